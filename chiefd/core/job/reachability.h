// Says which tasks of a job reach which other tasks, judging by the links that are broken now (chiefd/core/links.h).
// Changes nothing. An example with three workers:
//
//   1. worker/0 can't reach ps/1, but worker/1 and worker/2 can. So worker/0 has to leave the job.
//   2. Then worker/1 can't reach ps/1 either. Now most workers can't, so ps/1 counts as cut off, and the workers stay.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "chiefd/core/tasks.h"
#include "common/ids.h"
#include "common/time.h"

namespace disttrain::chiefd {

class GenerationPlan;
class Links;
class StageWait;
class Workers;
struct JobParts;

class Reachability {
 public:
  explicit Reachability(const JobParts& parts);

  // Returns the workers whose links count: the workers of the roster that aren't lost. While the job prepares its next
  // generation (stage kRegather): all connected workers that can take work.
  std::vector<TaskId> voters(const Tasks& tasks) const;
  // True if most workers can't reach the ps.
  bool is_cut_off(const Tasks& tasks, TaskId ps) const;
  // True if the ps must get no shard, because most workers or another ps can't reach it. If two ps tasks can't reach
  // each other, one of them is avoided: the ps with more broken links to other ps tasks. If both have equally many, the
  // pacer is kept. If neither is the pacer, the ps with the larger id is avoided.
  bool is_avoided(const Tasks& tasks, TaskId ps) const;
  bool reaches_owners(TaskId worker) const;

  // The broken links from a worker to owners of shards, as a text. Empty if the worker reaches all owners.
  std::string links_of(Instant now, TaskId worker) const;
  // The links_of() of several workers, in one text. These are the workers whose broken links were reported as events.
  std::string broken_links_text(Instant now) const;

 private:
  std::set<TaskId> peers_cut_off(const Tasks& tasks, TaskId ps) const;

  const StageWait& stage_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Links& links_;
};

}  // namespace disttrain::chiefd
