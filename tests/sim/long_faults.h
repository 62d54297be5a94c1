// Faults that outlast timeouts: partitions, pauses and disks that hang, most for up to a minute, and a ps that lives on
// beside its successor. Each ends by itself. LongFaults has a random stream of its own, so that a seed without any long
// fault keeps its trace.
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
  // The parts of the simulation that long faults act on.
  struct Cluster {
    std::vector<TaskId> tasks;  // the chief first
    std::function<std::string(TaskId)> address;
    std::function<bool()> trains;  // whether the first job trains
    // Starts a second process for a ps, elsewhere; the first one lives on.
    std::function<void(TaskId)> start_beside;
  };
  LongFaults(std::uint64_t seed, World& world, Network& network, Storage& storage, ChiefDisk& journal);

  // Whether this seed's faults show only in a job that trains for long without leases from the chief.
  bool wants_long_job() const;

  // Sets off this seed's faults within the time `within`.
  void begin(Duration within, Cluster cluster);
  // No fault begins any more.
  void end() { is_over_ = true; }
  // When the last fault that has begun is over.
  Instant over_at() const { return over_at_; }

 private:
  enum class Kind {
    kPause,
    kIsolation,  // one task, from all others
    kOneWay,     // one task hears nobody, or nobody hears it
    kSplit,      // every task is on one of two sides
    kChiefFromPs,
    kChiefFromWorker,
    kPsFromPs,
    kWorkerFromPs,
    kHalfFromPs,  // half of the workers
    kDisk,
    kJournal,
    kBeside,
    kBesideToo,  // the same, to make it twice as likely: in few seeds do two owners apply frames
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
