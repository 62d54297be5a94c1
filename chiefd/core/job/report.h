// Builds a job's status and the list of tasks that it waits for. Changes nothing. See status.h and awaited.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/awaited.h"
#include "chiefd/core/status.h"
#include "chiefd/core/tasks.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Absences;
class Candidates;
class CheckpointFolder;
class CheckpointSchedule;
class CheckpointStats;
class Checkpointing;
class Condition;
class Evaluators;
class EventLog;
class Gathering;
class GenerationPlan;
class JobMembers;
class Leaving;
class Pauses;
class Progress;
class Quorum;
class Reachability;
class Reclaim;
class Regathering;
class Rollbacks;
class StageWait;
class WorkerFigures;
class Workers;
struct JobParts;
struct JobSetup;

class JobReport {
 public:
  explicit JobReport(const JobParts& parts);

  // See EventLog::reached().
  Step reached() const;
  // The job's status without the state of its tasks. Cluster adds this state.
  JobStatus status(Instant now) const;
  std::vector<Awaited> waits_for(const Tasks& tasks, Instant now) const;
  // A text about a training job: how many workers train, which are kept out and why, which links are broken, and why no
  // checkpoint can be taken.
  std::string training_reason(Instant now) const;
  std::string why_kept_out(TaskId task, Instant now) const;
  std::optional<std::uint64_t> reached_by(const Member& member, const Heartbeat& heartbeat) const;

 private:
  JobPart part() const;
  void add_progress(JobStatus& status, Instant now) const;
  AwaitedFor expected_answer() const;

  const JobSetup& setup_;
  const StageWait& stage_;
  const Condition& condition_;
  const EventLog& events_;
  const Progress& progress_;
  const Rollbacks& rollbacks_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Candidates& candidates_;
  const WorkerFigures& worker_figures_;
  const Pauses& pauses_;
  const Absences& absences_;
  const JobMembers& members_;
  const Reachability& reachability_;
  const Gathering& gathering_;
  const Regathering& regathering_;
  const Reclaim& reclaim_;
  const CheckpointFolder& folder_;
  const CheckpointSchedule& schedule_;
  const CheckpointStats& stats_;
  const Checkpointing& checkpointing_;
  const Quorum& quorum_;
  const Leaving& leaving_;
  const Evaluators& evaluators_;
};

}  // namespace disttrain::chiefd
