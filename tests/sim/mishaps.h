// More faults and requests: a job's folder is away or can't be read for a while, a fault damages a checkpoint, a client
// asks for a checkpoint or for the job's end, an operator restarts tasks. Mishaps draws from random streams of its own,
// so that it doesn't change the runs of seeds that have no mishap.
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

  // Called before the job begins. Sets a low job.max_restarts for some jobs.
  void draw(JobConfig& job);
  // Tells a task to end, and starts it again after `away`. `role`: the task's role; without it, the task is a ps or a
  // worker. `number` chooses the task. The chief is never chosen, because for it a stop is the same as a crash.
  using EndTask = std::function<void(std::optional<Role> role, std::uint64_t number, Duration away)>;

  // Begins this seed's mishaps at random times within `within`. `chief` returns null while the chief doesn't listen.
  // `lose_a_ps` kills a ps.
  void begin(const JobConfig& job, Duration within, std::function<ChiefNode*()> chief, std::function<void()> lose_a_ps,
             EndTask end_a_task);
  void end() { is_over_ = true; }

  // Returns true if a client has asked to stop or kill the job.
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
  // Runs `work` at a time within `within`. The time is drawn from leaves_.
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
