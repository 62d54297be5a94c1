// The attempts of a job at a checkpoint, one at a time: the folder is made, each ps reserves the space, the shards cut,
// their files are written, the manifest makes them a checkpoint (attempts.h). When one is due: checkpoint_schedule.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chiefd/core/attempts.h"
#include "chiefd/core/job/turn.h"
#include "common/messages/checkpoint.h"

namespace disttrain::chiefd {

class CheckpointFolder;
class CheckpointSchedule;
class CheckpointStats;
class Condition;
class EventLog;
class FinalCheckpoint;
class GenerationPlan;
class Leaving;
class Loans;
class Membership;
class Pauses;
class Progress;
class Rollbacks;
class Savers;
class StageWait;
class TrainingRun;
class WorkClock;
class Workers;
struct JobParts;
struct JobSetup;

class Checkpointing {
 public:
  explicit Checkpointing(JobParts& parts);

  bool is_under_way() const { return attempt_.has_value(); }
  // Nothing is applied after the cut of the attempt that is under way.
  bool is_holding() const { return attempt_ && attempt_->holds; }
  bool is_cutting() const { return attempt_ && attempt_->phase == Attempt::Phase::kCut; }
  const std::optional<Attempt>& attempt() const { return attempt_; }

  // Begins an attempt when one is due, and moves on the one that is under way.
  void advance(Turn& turn);
  // `at`: sync: the step that is wanted; 0: now.
  void begin(Turn& turn, Step at);
  void on_folder(Turn& turn, const FolderDone& done);
  void on_prepared(Turn& turn, const Member& from, const CheckpointPrepared& prepared);
  void on_written(Turn& turn, const ShardWritten& written);
  void on_failed(Turn& turn, const Member& from, const CheckpointFailed& failed);
  // Where nobody makes steps, the step that the cut waits for doesn't come.
  void cut_now(Turn& turn);

  // The checkpoint before stays, and training goes on. `fails`: it would fail again if nothing changes, unlike one that
  // a lost connection or task ended.
  void abandon(Turn& turn, const std::string& why, bool fails = false);
  // Nobody is to wait for it any more. What is being committed needs nobody, and is committed all the same.
  void interrupt(Turn& turn, const std::string& why);
  // The member has a new connection: what it was asked over the one before may be lost.
  void repeat(Turn& turn, const Member& member);
  // A part of it is still to come from this ps.
  bool is_owed_by(const Member& ps) const;

 private:
  void order_cut(Turn& turn);
  void commit(Turn& turn);
  void on_committed(Turn& turn, const FolderAnswer& answer);
  void repeat_to_ps(Turn& turn, const Member& ps);

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  EventLog& events_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  Progress& progress_;
  Rollbacks& rollbacks_;
  const Pauses& pauses_;
  const WorkClock& work_clock_;
  CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  CheckpointStats& stats_;
  Savers& savers_;
  Loans& loans_;
  Leaving& leaving_;
  Membership& membership_;
  TrainingRun& training_;
  FinalCheckpoint& final_checkpoint_;

  std::optional<Attempt> attempt_;
  std::uint64_t last_number_ = 0;
};

}  // namespace disttrain::chiefd
