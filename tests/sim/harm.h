// The tasks that faults have hit so far. Only these may be named as the cause of a loss (I26).
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

  // If a fault hits the link between a worker and a ps, the worker may be lost for it. The ps may be lost, too, if at
  // least half of the workers had such a link to it:
  // 1. With 4 workers, the link from worker/0 to ps/0 fails: only worker/0 is hit.
  // 2. Later the link from worker/1 to ps/0 fails: worker/0, worker/1 and ps/0 are hit.
  bool is_hit(TaskId task) const;

 private:
  std::size_t workers_ = 0;
  std::set<TaskId> hit_;
  std::map<TaskId, std::set<TaskId>> away_from_;  // by ps: the workers whose link to it failed
};

}  // namespace disttrain::sim
