// Faults that last longer than timeouts: partitions, pauses and disks that hang, and a ps that goes on although another
// process has taken its place. Most end within a minute, and each ends by itself. LongFaults draws from a random stream
// of its own, so that it doesn't change the runs of seeds that have no long fault.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/random.h"
#include "tests/sim/network.h"
#include "tests/sim/storage.h"
#include "tests/sim/world.h"

namespace disttrain::sim {

struct ChiefDisk;

class LongFaults {
 public:
  // The parts of the simulation that LongFaults acts on.
  struct Cluster {
    std::vector<TaskId> tasks;  // the chief first
    std::function<std::string(TaskId)> address;
    std::function<bool()> trains;  // returns true while the first job trains
    // Starts a second process for a ps on another host. The first process goes on running.
    std::function<void(TaskId)> start_beside;
  };
  LongFaults(std::uint64_t seed, World& world, Network& network, Storage& storage, ChiefDisk& journal);

  // Returns true if this seed's faults have an effect only if the job trains for a long time and its workers need no
  // leases from the chief.
  bool wants_long_job() const;

  // Begins this seed's faults at random times within `within`.
  void begin(Duration within, Cluster cluster);
  // No fault begins any more.
  void end() { is_over_ = true; }
  // The time at which all faults that have begun will be over.
  Instant over_at() const { return over_at_; }

 private:
  enum class Kind {
    kPause,
    kIsolation,  // one task can't reach any other task
    kOneWay,     // one task receives nothing, or nothing that it sends arrives
    kSplit,      // the tasks are split into two groups that can't reach each other
    kChiefFromPs,
    kChiefFromWorker,
    kPsFromPs,
    kWorkerFromPs,
    kHalfFromPs,  // half of the workers
    kDisk,
    kJournal,
    kBeside,
    // The same fault as kBeside. It is listed twice to be drawn twice as often, because two owners of a shard apply
    // frames only in few seeds.
    kBesideToo,
    kKinds
  };
  std::uint64_t between(std::uint64_t least, std::uint64_t most) { return least + random_.below(most - least + 1); }
  Duration how_long();
  TaskId some(Role role);
  void once_it_trains(std::function<void()> work);
  void later(Duration within, std::function<void()> work);
  void one(Kind kind);
  void part(Happening what, const std::string& words, const std::vector<std::pair<TaskId, TaskId>>& pairs,
            bool both_ways);
  void lasts(Duration duration);

  World& world_;
  Network& network_;
  Storage& storage_;
  ChiefDisk& journal_;
  Random random_;
  std::vector<Kind> kinds_;
  Cluster cluster_;
  bool is_over_ = false;
  Instant over_at_;
};

}  // namespace disttrain::sim
