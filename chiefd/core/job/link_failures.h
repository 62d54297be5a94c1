// Handles broken links between tasks that the chief itself hears, and decides which task the job goes on without. See
// links.h and reachability.h.
//
// A worker that can't reach a ps complains to the chief at once, and repeats its complaint while the link is broken.
// After Timeouts::unreachable the chief decides:
//
//   1. If at least half of the workers reach the ps, the chief removes the worker, and the other workers train on.
//   2. Otherwise the job pauses and waits for the ps as long as it would wait for a silent ps. After that the chief
//      gives the shards to other ps tasks, if these have the memory.
//
// The chief blames neither end of the link, and counts nothing for job.max_restarts. A worker outside the job joins
// only when it reaches every ps that owns a shard. Until then, once per Timeouts::relink, the chief asks this worker
// which ps tasks it reaches.
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
  // A task came or went. Forgets the broken links of a task that is gone.
  void on_finding(const Turn& turn, const Finding& finding);
  // Called at each tick. Drops complaints that weren't repeated. If broken links made the job pause, ends the pause
  // when the links work again.
  void review(Turn& turn);
  // A worker that isn't in the job has reported which ps tasks it can't reach.
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
