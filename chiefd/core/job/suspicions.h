// Tasks that fail, and whom to blame. A task that says it failed because another can't be reached names a victim, maybe
// itself: all others are probed, and until each has been heard since, or is lost, or the time is up, nobody is blamed.
#pragma once

#include <map>

#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"
#include "common/result.h"

namespace disttrain::chiefd {

class Candidates;
class CheckpointFolder;
class Condition;
class Ending;
class EventLog;
class GenerationPlan;
class JobMembers;
class Links;
class Membership;
class Pauses;
class Recovery;
class StageWait;
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
  bool refuses_to_join(Turn& turn, const Member& from, const TaskFailed& failed);
  bool is_settled(const Turn& turn, const Member& from, Instant since) const;
  bool may_pass(ErrorCode code) const;
  bool judge(Turn& turn, const Member& from, const std::string& why);

  const JobSetup& setup_;
  StageWait& stage_;
  const Condition& condition_;
  EventLog& events_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  Pauses& pauses_;
  Links& links_;
  const JobMembers& members_;
  Membership& membership_;
  Recovery& recovery_;
  CheckpointFolder& folder_;
  Ending& ending_;

  std::map<Member, Suspicion> suspicions_;  // by who said so: nobody says it twice
};

}  // namespace disttrain::chiefd
