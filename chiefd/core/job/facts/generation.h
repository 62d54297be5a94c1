// Plans a generation of a job: which ps owns which shard, what the shards begin with, and the numbers that tell this
// generation from others. The loss of a ps ends a generation, and the job then plans the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/memory_fit.h"
#include "chiefd/core/placement.h"
#include "chiefd/core/tasks.h"
#include "common/layout.h"
#include "common/result.h"

namespace disttrain::chiefd {

class GenerationPlan {
 public:
  // Which ps owns which part of the model.
  struct Placed {
    Layout layout;
    BucketSize bucket_size = BucketSize::kLarge;  // with which place() made the layout
    std::vector<Owner> owners;                    // of each shard
  };

  explicit GenerationPlan(const JobSetup& setup) : setup_(setup) {}

  // The number of the newest generation that has begun. 0 if none has begun.
  Generation number() const { return number_; }
  // True if the job had another generation before this one, even if that was before a restart of the chief.
  bool has_predecessor() const { return has_predecessor_; }
  // The model and the data, as a worker has described them. place() needs this description.
  const std::optional<JobDescribed>& described() const { return described_; }
  const Placed& placed() const { return placed_; }
  const Layout& layout() const { return placed_.layout; }

  // The owner of each shard. Empty if no shard was placed yet.
  const std::vector<Owner>& owners() const { return placed_.owners; }
  bool is_owner(const Member& member) const;
  bool owns(const Member& member, ShardId shard) const {
    return shard.value < owners().size() && owners()[shard.value].ps == member;
  }
  // The owner of shard 0. owners() must not be empty.
  const Member& pacer() const { return owners().front().ps; }
  // Each ps that owns shards, once, in the order of the first shard that it owns.
  std::vector<Member> holders() const;

  // The secret that a task shows when it opens a channel. The chief keeps the secret only in memory. So after a restart
  // of the chief, token() returns 0 until a ps has reported the secret.
  std::uint64_t token() const { return token_; }
  // The number that the chief writes into the checkpoint folder. A ps that reads the same number has the same folder
  // mounted.
  std::uint64_t mark() const { return mark_; }
  // The checkpoint that the generation begins with. None if it begins with initial values.
  const std::optional<RestorePoint>& restore() const { return restore_; }
  Step first_step() const { return restore_ ? restore_->step : Step(); }
  // The path that the initial values are read from. Empty if they are drawn at random, or if the path isn't resolved
  // yet.
  const std::string& init_path() const { return init_path_; }
  // The number of workers that the shards have memory for.
  std::uint32_t places() const { return places_; }

  // ---- decisions for the next generation, in this order
  void describe(const JobDescribed& described) { described_ = described; }
  void forget_description() { described_.reset(); }
  void draw_numbers(Term term);
  void restore_from(std::optional<RestorePoint> point) { restore_ = std::move(point); }
  void init_from(std::string path) { init_path_ = std::move(path); }
  // Fails if the checkpoint's account of the records that the job has trained on, its ledger or each worker's number of
  // batches, would be wrong for the job: the number of records, data.sharding, or with "none" the size of a batch has
  // changed since.
  Status check_restore() const;
  // How the model is placed on the connected ps tasks for which `is_avoided` returns false, for `roster` workers.
  Result<Placed> plan(const Tasks& tasks, const std::function<bool(TaskId)>& is_avoided, std::size_t roster) const;
  void place(Placed placed) { placed_ = std::move(placed); }
  // Keeps the same ps tasks as owners, with the processes that are connected now. Each owner must be in `tasks`.
  void keep_owners(const Tasks& tasks);
  // The number of workers that these shards should have memory for: wanted_places(), or fewer if the ps tasks lack
  // memory for so many. Fails if they lack memory for `least` workers.
  Result<std::uint32_t> plan_places(const Tasks& tasks, const Placed& placed, std::size_t least,
                                    std::size_t roster) const;
  void make_places(std::uint32_t places) { places_ = places; }
  MemoryFit memory_fit(const Tasks& tasks) const { return memory_fit(tasks, placed_); }
  // Begins the generation that was planned. Its number is higher than all earlier numbers of the job and of its
  // checkpoint folder.
  void begin(Generation newest_in_folder);

  // ---- after a restart of the chief
  void restore_number(Generation number) { number_ = number; }
  void take_up(const GenerationRecord& record, std::size_t roster);
  Status recompute_layout();
  // A ps has reported the secret.
  void learn_token(std::uint64_t token) { token_ = token; }

 private:
  MemoryFit memory_fit(const Tasks& tasks, const Placed& placed) const;

  const JobSetup& setup_;
  std::optional<JobDescribed> described_;
  Placed placed_;
  std::uint64_t token_ = 0;
  std::uint64_t mark_ = 0;
  std::uint64_t numbers_drawn_ = 0;
  Generation number_;
  bool has_predecessor_ = false;
  std::optional<RestorePoint> restore_;
  std::string init_path_;
  std::uint32_t places_ = 0;
};

}  // namespace disttrain::chiefd
