// Closes a job that has ended: its end is journaled, then its tasks are told to release it. The next job may start when
// all have released it, or were left behind after Timeouts::close.
//
//   close()   stage kClose, the EndRecord is written (or the disk hangs for too long)
//   begin()   the workers are told to close; then, in good order, the ps tasks
//   finish()  stage kReleased, the state is final
#pragma once

#include <string>
#include <vector>

#include "chiefd/core/job/turn.h"
#include "chiefd/core/journal_state.h"

namespace disttrain::chiefd {

class CheckpointFolder;
class Checkpointing;
class Condition;
class GenerationPlan;
class HeldActions;
class JobMembers;
class JobReport;
class Pauses;
class Progress;
class Rollbacks;
class Savers;
class StageWait;
class Suspicions;
class Workers;
struct JobParts;
struct JobSetup;

class Closing {
 public:
  explicit Closing(JobParts& parts);

  void close(Turn& turn, JobState end, const std::string& reason);
  // The end is durable, so a restarted chief that finds tasks without the job knows why.
  void begin(Turn& turn);
  // No answer is awaited any more: tells the remaining tasks, then releases the job.
  void finish(Turn& turn);
  // No task is told to close before this is true.
  bool is_end_written() const { return is_end_written_; }
  // A task that was told to end (SIGTERM) has released the job.
  bool lets_go(const Member& member) const;

 private:
  EndRecord end_record(Instant now) const;
  void tell_to_close(Turn& turn, std::vector<Member> members);

  const JobSetup& setup_;
  StageWait& stage_;
  HeldActions& held_;
  Condition& condition_;
  Progress& progress_;
  Rollbacks& rollbacks_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  Pauses& pauses_;
  const JobMembers& members_;
  Suspicions& suspicions_;
  CheckpointFolder& folder_;
  Savers& savers_;
  Checkpointing& checkpointing_;
  const JobReport& report_;

  JobState end_ = JobState::kFinished;  // the state after closing
  bool is_end_written_ = false;
  Step journaled_step_;           // in the EndRecord
  std::vector<Member> to_close_;  // told to close once the others have closed
};

}  // namespace disttrain::chiefd
