// Which tasks of a job reach which, by the links that are broken now (chiefd/core/links.h). Only asks.
//
//   worker/0, worker/1 and worker/2 vote. worker/0 can't reach ps/1: most reach it, so worker/0 is the one to go.
//   worker/1 can't reach ps/1 either: most can't, so ps/1 is cut off, and the workers stay.
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

  // The workers whose links count.
  std::vector<TaskId> voters(const Tasks& tasks) const;
  // Most workers can't reach it.
  bool is_cut_off(const Tasks& tasks, TaskId ps) const;
  // No shard is given to it. Of two ps tasks that can't reach each other it is the one that can't reach more of the
  // others, else the one that isn't the pacer's.
  bool is_avoided(const Tasks& tasks, TaskId ps) const;
  bool reaches_owners(TaskId worker) const;

  // The broken links of a worker to the owners of shards. "": it reaches them.
  std::string links_of(Instant now, TaskId worker) const;
  // Of all workers: those that an event has told.
  std::string broken_links_text(Instant now) const;

 private:
  std::set<TaskId> peers_cut_off(const Tasks& tasks, TaskId ps) const;

  const StageWait& stage_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Links& links_;
};

}  // namespace disttrain::chiefd
