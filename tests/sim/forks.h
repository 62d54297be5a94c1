// A second chief is started on a copy of the first chief's journal folder, with the same journal id and the same term.
// For a while, tasks that dial the chief's address reach the second chief. If a task already knows the first chief, it
// refuses the second one; otherwise it obeys the second one. Then an operator ends the second chief and restarts the
// first. Forks draws from a random stream of its own, so that it doesn't change the runs of seeds that have no second
// chief.
#pragma once

#include <functional>
#include <vector>

#include "common/random.h"
#include "tests/sim/chief_node.h"
#include "tests/sim/network.h"
#include "tests/sim/world.h"

namespace disttrain::sim {

class Forks {
 public:
  Forks(std::uint64_t seed, World& world, Network& network)
      : world_(world), network_(network), random_(seed, stream_of("forks")) {}

  // The parts of the simulation that Forks acts on.
  struct Cluster {
    std::vector<TaskId> tasks;                                // the chief first
    std::function<ChiefNode*()> chief;                        // null while it doesn't listen
    std::function<void(TaskId, Duration away)> restart_task;  // with a crash
  };
  void begin(Duration within, Cluster cluster);
  // Ends the second chief if it runs. From now on, none is started.
  void end();

 private:
  Duration draw(std::uint64_t least_ms, std::uint64_t most_ms) {
    return std::chrono::milliseconds(least_ms + random_.below(most_ms - least_ms + 1));
  }
  void fork();
  void join();

  World& world_;
  Network& network_;
  Random random_;
  Cluster cluster_;
  bool is_over_ = false;
};

}  // namespace disttrain::sim
