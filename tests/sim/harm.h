// Which tasks faults have hit so far, and so may be told as the cause of a loss (I26). Whoever isn't in here has been
// well all the time.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/ids.h"

namespace disttrain::sim {

class Harm {
 public:
  void set_workers(std::size_t workers) { workers_ = workers; }

  // The process at this address was killed, stood still, or its clock was set.
  void hit(const std::string& address);
  // A fault loses or delays messages between these two addresses.
  void hit_link(const std::string& one, const std::string& other);

  // Of a link between a worker and a ps the worker is the one that may be lost for it. The ps may be where half of the
  // workers had such a link to it.
  bool is_hit(TaskId task) const;

 private:
  std::size_t workers_ = 0;
  std::set<TaskId> hit_;
  std::map<TaskId, std::set<TaskId>> away_from_;  // by ps: workers
};

}  // namespace disttrain::sim
