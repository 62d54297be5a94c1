// Which tasks of a job reach which, by the links that are broken now (chiefd/core/links.h). Queries only.
//
//   worker/0, worker/1 and worker/2 vote. worker/0 can't reach ps/1, but most do: worker/0 has to go.
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

  // The workers whose links count: those of the roster that aren't lost; in kRegather all that take work.
  std::vector<TaskId> voters(const Tasks& tasks) const;
  // Most workers can't reach the ps.
  bool is_cut_off(const Tasks& tasks, TaskId ps) const;
  // The ps gets no shard. Of two ps tasks that can't reach each other, the ps with more broken links to other ps tasks
  // is avoided; with equally many, the ps that isn't the pacer; else the ps with the larger id.
  bool is_avoided(const Tasks& tasks, TaskId ps) const;
  bool reaches_owners(TaskId worker) const;

  // The broken links from a worker to owners of shards. "": the worker reaches all owners.
  std::string links_of(Instant now, TaskId worker) const;
  // The same for all workers that an event has reported a broken link of.
  std::string broken_links_text(Instant now) const;

 private:
  std::set<TaskId> peers_cut_off(const Tasks& tasks, TaskId ps) const;

  const StageWait& stage_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Links& links_;
};

}  // namespace disttrain::chiefd
