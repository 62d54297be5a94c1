// Closes a job that has ended. The chief journals the end of the job, then tells the job's tasks to release the job.
// The next job may start when all tasks have released this job, or haven't done so within Timeouts::close. If the
// workers close first, the ps tasks get the same time after them.
//
//   close()   enters stage kClose and writes the EndRecord
//   begin()   the EndRecord is durable, or the disk has hung for too long; tells the tasks to close
//   finish()  enters stage kReleased; the state of the job is final
#pragma once

#include <string>
#include <vector>

#include "chiefd/core/job/turn.h"
#include "chiefd/core/journal_state.h"

namespace disttrain::chiefd {

class CheckpointFolder;
class Checkpointing;
class Condition;
class Evaluators;
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
  // Called when the job's end is durable. A chief that is restarted later then knows that the job has ended, although
  // tasks may still hold the job.
  void begin(Turn& turn);
  // Called when all tasks that were told to close have answered or are out of time. If the ps tasks weren't told yet,
  // because the workers close first, tells them. Otherwise releases the job.
  void finish(Turn& turn);
  // The chief tells no task to close before this is true.
  bool is_end_written() const { return is_end_written_; }
  // True if the closing job doesn't need this task any more. A task that was told to end (SIGTERM) may then leave.
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
  Evaluators& evaluators_;
  const JobReport& report_;

  JobState end_ = JobState::kFinished;  // the state after closing
  bool is_end_written_ = false;
  Step journaled_step_;           // the step in the EndRecord
  std::vector<Member> to_close_;  // ps tasks that are told to close when the workers have closed
};

}  // namespace disttrain::chiefd
