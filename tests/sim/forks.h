// A second chief that was started on a copy of the first one's journal folder: it has the same journal id and the same
// term. For a while tasks that dial the chief's address reach it; whoever knows the first one refuses it, and whoever
// doesn't obeys it. Then somebody ends it and restarts the first. All of it is drawn apart, so that a seed without a
// copy has the story that it would have without this file.
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

  // The parts of the simulation that forks act on.
  struct Cluster {
    std::vector<TaskId> tasks;                                // the chief first
    std::function<ChiefNode*()> chief;                        // null where it doesn't listen
    std::function<void(TaskId, Duration away)> restart_task;  // as by a crash
  };
  void begin(Duration within, Cluster cluster);
  // Nothing new begins, and the copy is gone.
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
