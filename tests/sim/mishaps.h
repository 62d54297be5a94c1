// More faults and requests: a job's folder is away or can't be read for a while, a checkpoint is damaged, a client asks
// for a checkpoint or for the job's end, an operator restarts tasks. Mishaps has random streams of its own, so that a
// seed without any mishap keeps its trace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/ids.h"
#include "common/random.h"
#include "tests/sim/chief_node.h"
#include "tests/sim/laws.h"
#include "tests/sim/storage.h"
#include "tests/sim/world.h"

namespace disttrain::sim {

class Mishaps {
 public:
  Mishaps(std::uint64_t seed, World& world, Storage& storage, Laws& laws, const ChiefDisk& journal)
      : world_(world),
        storage_(storage),
        laws_(laws),
        journal_(journal),
        random_(seed, stream_of("mishaps")),
        leaves_(seed, stream_of("leaves")),
        claims_(seed, stream_of("claims")) {}

  // Called before the job begins. Allows some jobs only few restarts.
  void draw(JobConfig& job);
  // Tells a task to end, and starts it again after `away`. Without a role, the task is a ps or a worker. The chief is
  // never chosen, because its end is a crash as any other.
  using EndTask = std::function<void(std::optional<Role> role, std::uint64_t number, Duration away)>;

  // Sets off this seed's mishaps within the time `within`. `chief`: null while it doesn't listen. `lose_a_ps`: kills a
  // ps.
  void begin(const JobConfig& job, Duration within, std::function<ChiefNode*()> chief, std::function<void()> lose_a_ps,
             EndTask end_a_task);
  void end() { is_over_ = true; }

  // Whether a client has asked to stop or kill the job.
  bool is_stopped() const { return is_stopped_; }

 private:
  std::uint64_t between(std::uint64_t least, std::uint64_t most) { return least + random_.below(most - least + 1); }
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }
  void at_some_time(Duration within, std::function<void()> work);
  void lose_folder(Storage::Reach how);
  void damage(const JobConfig& job);
  void draw_leaves(Duration within);
  void draw_claims(Duration within);
  void draw_ps_leaves(const std::string& job, Duration within);
  void end_a_task(std::optional<Role> role);
  // Runs `work` at a time within `within` that is drawn from leaves_.
  void later(Duration within, std::function<void()> work);
  void once_it_trains(const std::string& job, std::function<void()> work);

  World& world_;
  Storage& storage_;
  Laws& laws_;
  const ChiefDisk& journal_;
  Random random_;
  Random leaves_;
  Random claims_;
  std::function<ChiefNode*()> chief_;
  std::function<void()> lose_a_ps_;
  EndTask end_a_task_;
  bool is_over_ = false;
  bool is_stopped_ = false;
};

}  // namespace disttrain::sim
