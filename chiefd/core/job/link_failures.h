// Links that don't carry between tasks that the chief hears: who goes on without whom. See links.h and reachability.h.
//
// A worker that can't reach a ps says so at once, and again and again while that lasts. From Timeouts::unreachable on
// the chief decides: where most workers reach the ps, the one that doesn't is removed, and the others train on; else
// the ps is waited for as a silent one is, and then done without where others can take its shards. Neither end is
// blamed, and nothing counts for job.max_restarts. A worker that isn't in the job is asked again and again which ps
// tasks it reaches, and joins only when it reaches all that it needs.
#pragma once

#include <string>
#include <vector>

#include "chiefd/core/job/turn.h"
#include "chiefd/core/links.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Candidates;
class Checkpointing;
class Condition;
class Ending;
class EventLog;
class GenerationPlan;
class JobMembers;
class Links;
class Membership;
class Pauses;
class Pausing;
class Reachability;
class Recovery;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class LinkFailures {
 public:
  explicit LinkFailures(JobParts& parts);

  void on_accusation(Turn& turn, const Member& from, const Accusation& accusation);
  // What a task's coming or going says of its links.
  void on_finding(const Turn& turn, const Finding& finding);
  // At each tick: complaints that didn't come again are void, and what they paused goes on.
  void review(Turn& turn);
  // A worker that isn't in the job says which ps tasks it doesn't reach.
  void note_reach(Turn& turn, const Member& from, const std::vector<Member>& unreachable);

 private:
  bool has_channels() const;
  void mend(Turn& turn, const Links::Link& link);
  void tell(Turn& turn, const Links::Link& link, const std::string& consequence);
  void judge(Turn& turn, const Member& from, const Links::Link& link);
  void judge_worker(Turn& turn, const Member& from, const Links::Link& link);
  void wait_for_links(Turn& turn, TaskId ps);

  const JobSetup& setup_;
  StageWait& stage_;
  EventLog& events_;
  Condition& condition_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  Pauses& pauses_;
  Links& links_;
  const JobMembers& members_;
  const Reachability& reachability_;
  Membership& membership_;
  Pausing& pausing_;
  Recovery& recovery_;
  Checkpointing& checkpointing_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
