// A generation of a job: which ps owns which shard, what the shards begin with, and the numbers that tell it from
// others. A loss of a ps ends it, and another one is decided. Owned by the job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/memory_fit.h"
#include "chiefd/core/tasks.h"
#include "common/layout.h"
#include "common/result.h"

namespace disttrain::chiefd {

class GenerationPlan {
 public:
  explicit GenerationPlan(const JobSetup& setup) : setup_(setup) {}

  // The newest that was begun; 0: none.
  Generation number() const { return number_; }
  // A generation before this one was begun, by whatever chief.
  bool has_predecessor() const { return has_predecessor_; }
  // What the job trains, as a worker has described it. Must be known for all that is placed.
  const std::optional<JobDescribed>& described() const { return described_; }
  const Layout& layout() const { return layout_; }

  // By shard. Empty: nothing was placed yet.
  const std::vector<Owner>& owners() const { return owners_; }
  bool is_owner(const Member& member) const;
  bool owns(const Member& member, ShardId shard) const {
    return shard.value < owners_.size() && owners_[shard.value].ps == member;
  }
  // The owner of shard 0. There must be owners.
  const Member& pacer() const { return owners_.front().ps; }
  // Each owner once, in the order of their first shards.
  std::vector<Member> holders() const;

  // The secret that channels show. It is on no disk: after a restart of the chief it is 0 until a ps has told it.
  std::uint64_t token() const { return token_; }
  // Written into the checkpoint folder, for the ps tasks to find.
  std::uint64_t mark() const { return mark_; }
  // The checkpoint that it began with. None: initial values.
  const std::optional<RestorePoint>& restore() const { return restore_; }
  Step first_step() const { return restore_ ? restore_->step : Step(); }
  // Where the initial values are read. "": they are drawn, or that isn't resolved yet.
  const std::string& init_path() const { return init_path_; }
  // Workers that the shards' memory is made for.
  std::uint32_t places() const { return places_; }

  // ---- decisions for the next one, in this order
  void describe(const JobDescribed& described) { described_ = described; }
  void forget_description() { described_.reset(); }
  void draw_numbers(Term term);
  void restore_from(std::optional<RestorePoint> point) { restore_ = std::move(point); }
  void init_from(std::string path) { init_path_ = std::move(path); }
  // The ledger of a checkpoint is of no use with other records.
  Status check_restore() const;
  // Places the model on the ps tasks that are there and not avoided, with memory for `least` workers or more, up to
  // `roster` and those that may come. On failure the owners may be those for whom the memory doesn't suffice.
  Status place(const Tasks& tasks, const std::function<bool(TaskId)>& is_avoided, std::size_t least,
               std::size_t roster);
  void put_back(std::vector<Owner> owners, Layout layout);
  // The same owners, as the processes that stand in their places now. Each must be known.
  void keep_owners(const Tasks& tasks);
  // Memory is made for workers that may still come, as far as there is any.
  Status make_places(const Tasks& tasks, std::size_t least, std::size_t roster);
  MemoryFit memory_fit(const Tasks& tasks) const;
  // Decided. Its number is above all that the job or its checkpoint folder has had.
  void begin(Generation newest_in_folder);

  // ---- after a restart of the chief
  void restore_number(Generation number) { number_ = number; }
  void take_up(const GenerationRecord& record, std::size_t roster);
  Status recompute_layout();
  // A ps has told it.
  void learn_token(std::uint64_t token) { token_ = token; }

 private:
  const JobSetup& setup_;
  std::optional<JobDescribed> described_;
  Layout layout_;
  std::vector<Owner> owners_;
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
