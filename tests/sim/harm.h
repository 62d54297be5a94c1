// The tasks that faults have hit so far. The chief may name only these tasks as the cause of a loss (I26).
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/ids.h"

namespace disttrain::sim {

class Harm {
 public:
  void set_workers(std::size_t workers) { workers_ = workers; }

  // A fault hit the process at this address: it was killed or paused, or its clock jumped.
  void hit(const std::string& address);
  // A fault loses or delays messages between these two addresses.
  void hit_link(const std::string& one, const std::string& other);

  // Returns true if the chief may blame this task. If a fault hits the link between a worker and a ps, the chief may
  // blame the worker. It may blame the ps only after faults have hit the links of at least half of the workers to this
  // ps. For example, with 4 workers:
  // 1. A fault hits the link from worker/0 to ps/0. Only worker/0 may be blamed.
  // 2. Later a fault hits the link from worker/1 to ps/0. Now worker/0, worker/1 and ps/0 may be blamed.
  bool is_hit(TaskId task) const;

 private:
  std::size_t workers_ = 0;
  std::set<TaskId> hit_;
  std::map<TaskId, std::set<TaskId>> away_from_;  // for each ps, the workers whose links to it were hit
};

}  // namespace disttrain::sim
