// A job's attempts to take a checkpoint, one at a time (attempts.h). checkpoint_schedule.h says when one is due.
//
//   1. The chief makes the folder.
//   2. Each ps reserves the space.
//   3. Each shard cuts: it copies its parameters at one step.
//   4. Each ps writes the files of its shards.
//   5. The chief writes the manifest. Only that makes the files a checkpoint.
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
  // The shards apply nothing after the cut of the current attempt.
  bool is_holding() const { return attempt_ && attempt_->holds; }
  bool is_cutting() const { return attempt_ && attempt_->phase == Attempt::Phase::kCut; }
  const std::optional<Attempt>& attempt() const { return attempt_; }

  // Begins an attempt when one is due, and moves the current attempt on.
  void advance(Turn& turn);
  // `at`: in sync the step to cut at; 0: now.
  void begin(Turn& turn, Step at);
  void on_folder(Turn& turn, const FolderDone& done);
  void on_prepared(Turn& turn, const Member& from, const CheckpointPrepared& prepared);
  void on_written(Turn& turn, const ShardWritten& written);
  void on_failed(Turn& turn, const Member& from, const CheckpointFailed& failed);
  // Cuts at once: no worker makes steps, so the step that the cut waits for won't come.
  void cut_now(Turn& turn);

  // Gives the attempt up. The previous checkpoint stays, and training goes on. `fails`: the next attempt would fail too
  // if nothing changes, unlike an attempt that ended with a lost connection or task.
  void abandon(Turn& turn, const std::string& why, bool fails = false);
  // Gives the attempt up, because no task may wait for it any more. A commit needs no task, so an attempt that is being
  // committed goes on.
  void interrupt(Turn& turn, const std::string& why);
  // The member has a new connection: repeats the requests that the old connection may have lost.
  void repeat(Turn& turn, const Member& member);
  // This ps still owes a part of the attempt.
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
