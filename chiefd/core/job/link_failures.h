// Broken links between tasks that the chief itself hears: decides which task the job goes on without. See links.h and
// reachability.h.
//
// A worker that can't reach a ps says so at once, and repeats it while that lasts. After Timeouts::unreachable the
// chief decides. If most workers reach the ps, the worker is removed and the others train on. Else the chief waits for
// the ps as for a silent one, and then gives its shards to others if they can take them. Neither end is blamed, and
// nothing counts for job.max_restarts. A worker that isn't in the job is asked every Timeouts::relink which ps tasks it
// reaches. It joins only when it reaches every owner of a shard.
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
  // A task came or went: forgets the links that this makes void.
  void on_finding(const Turn& turn, const Finding& finding);
  // At each tick: drops complaints that weren't repeated, and ends the pauses that they caused.
  void review(Turn& turn);
  // A worker that isn't in the job reports which ps tasks it can't reach.
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
