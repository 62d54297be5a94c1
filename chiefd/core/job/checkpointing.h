// Takes a job's checkpoints, one attempt at a time (attempts.h). checkpoint_schedule.h says when an attempt is due.
//
//   1. The chief makes the folder of the attempt.
//   2. Each ps reserves the space for its files.
//   3. Each shard cuts: it copies its parameters.
//   4. Each ps writes the files of its shards.
//   5. The chief writes the manifest. Without a manifest the files aren't a checkpoint.
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
class Evaluators;
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
  // True if the shards apply nothing after the cut of the current attempt, because the attempt is for a ps that leaves.
  bool is_holding() const { return attempt_ && attempt_->holds; }
  bool is_cutting() const { return attempt_ && attempt_->phase == Attempt::Phase::kCut; }
  const std::optional<Attempt>& attempt() const { return attempt_; }

  // Begins an attempt if one is due, or moves the current attempt on to its next phase.
  void advance(Turn& turn);
  // Begins an attempt. In sync, `at` is the step at which the shards cut. Step 0 means that they cut at once.
  void begin(Turn& turn, Step at);
  void on_folder(Turn& turn, const FolderDone& done);
  void on_prepared(Turn& turn, const Member& from, const CheckpointPrepared& prepared);
  void on_written(Turn& turn, const ShardWritten& written);
  void on_failed(Turn& turn, const Member& from, const CheckpointFailed& failed);
  // Cuts at once if the current attempt waits for a later step. Called when no worker makes steps: the later step won't
  // come, and workers that want to join would wait for the cut.
  void cut_now(Turn& turn);

  // Gives the current attempt up. The previous checkpoint stays, and training goes on. `fails` is true if the next
  // attempt would fail for the same reason, for example a full disk. It is false if the attempt ended because a
  // connection or a task was lost.
  void abandon(Turn& turn, const std::string& why, bool fails = false);
  // Gives the current attempt up, so that no task waits for it any more. If the chief is already committing the
  // attempt, the commit goes on, because it needs no task. If the shards were holding, they apply pushes again in both
  // cases.
  void interrupt(Turn& turn, const std::string& why);
  // Called when a task has a new connection. Repeats the requests that the old connection may have lost.
  void repeat(Turn& turn, const Member& member);
  // True if this ps still has to write a shard for the current attempt.
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
  Evaluators& evaluators_;
  Loans& loans_;
  Leaving& leaving_;
  Membership& membership_;
  TrainingRun& training_;
  FinalCheckpoint& final_checkpoint_;

  std::optional<Attempt> attempt_;
  std::uint64_t last_number_ = 0;
};

}  // namespace disttrain::chiefd
