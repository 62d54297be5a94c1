// Collects the failures that tasks report, and decides which task to blame. A task that can't reach another task may be
// the victim or the cause. So the chief probes all other tasks. It blames no task until it has heard from each of them
// or found it lost, or until it has waited long enough.
//
//   1. worker/0 reports that it lost ps/1. The chief probes all other tasks and waits.
//   2. If ps/1 is found lost, the job recovers from the loss of ps/1, and the chief drops the report.
//   3. If all other tasks have answered, the chief removes worker/0.
#pragma once

#include <map>
#include <set>
#include <string>

#include "chiefd/core/job/faults.h"
#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"
#include "common/result.h"

namespace disttrain::chiefd {

class Candidates;
class CheckpointFolder;
class Condition;
class Ending;
class EventLog;
class Gathering;
class GenerationPlan;
class JobMembers;
class Links;
class Membership;
class Pauses;
class Quorum;
class Recovery;
class StageWait;
class StartFailures;
class Workers;
struct JobParts;
struct JobSetup;

class Suspicions {
 public:
  explicit Suspicions(JobParts& parts);

  void on_task_failed(Turn& turn, const Member& from, const TaskFailed& failed);
  // At each tick.
  void review(Turn& turn);
  void clear() { suspicions_.clear(); }

 private:
  struct Suspicion {
    Error error;
    Instant since;
  };
  void on_own_fault(Turn& turn, const Member& from, Faults::Verdict verdict, const std::string& reason);
  std::set<TaskId> living_workers() const;
  bool refuses_to_join(Turn& turn, const Member& from, const TaskFailed& failed);
  void retry_later(Turn& turn, const Member& from, const std::string& reason);
  bool is_settled(const Turn& turn, const Member& from, Instant since) const;
  bool may_pass(ErrorCode code) const;
  bool judge(Turn& turn, const Member& from, const std::string& why);

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  EventLog& events_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  Pauses& pauses_;
  Faults& faults_;
  Links& links_;
  const JobMembers& members_;
  Gathering& gathering_;
  Membership& membership_;
  Quorum& quorum_;
  Recovery& recovery_;
  CheckpointFolder& folder_;
  StartFailures& start_failures_;
  Ending& ending_;

  std::map<Member, Suspicion> suspicions_;  // for each task that reported, its first report
};

}  // namespace disttrain::chiefd
