// The tensor bytes of one shard: parameters, slots and workers' pushes. Only the shard's thread uses the store. The
// store carries out the core's actions and decides nothing, so the same calls give the same bits. The constructor takes
// all memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "common/layout.h"
#include "common/os/arena.h"
#include "common/update/update_rule.h"
#include "psd/core/events.h"

namespace disttrain::psd {

struct StoreOptions {
  TrainSection train;
  std::uint64_t seed = 1;
  std::uint32_t places = 0;  // number of workers to make memory for
  bool has_copy = false;     // true: make memory for a checkpoint's copy
  bool is_empty = false;     // true: parameters begin at 0, because the caller will fill them
};

// A copy of the parameters and slots at one moment. Nobody writes to it while it is lent.
class ShardCopy {
 public:
  ShardCopy(std::uint64_t elements, std::size_t slots)
      : elements_(elements), block_(arena_, elements * (1 + slots) * sizeof(float), Paging::kOnDemand) {}
  std::span<float> array(std::size_t i) { return block_.floats().subspan(i * elements_, elements_); }
  std::span<const float> array(std::size_t i) const { return block_.floats().subspan(i * elements_, elements_); }
  std::size_t arrays() const { return elements_ == 0 ? 0 : block_.floats().size() / elements_; }
  std::span<float> all() { return block_.floats(); }

  // Lends the copy to readers on any thread. Once is_lent() returns false again, all their reads are over.
  static std::shared_ptr<const ShardCopy> lend(const std::shared_ptr<ShardCopy>& copy) {
    copy->is_lent_.store(true, std::memory_order_relaxed);
    const auto give_back = [copy](const ShardCopy*) { copy->is_lent_.store(false, std::memory_order_release); };
    return std::shared_ptr<const ShardCopy>(copy.get(), give_back);
  }
  bool is_lent() const { return is_lent_.load(std::memory_order_acquire); }

 private:
  const std::uint64_t elements_;
  std::atomic<bool> is_lent_ = false;
  Arena arena_{ArenaKind::kPrivate};
  Memory block_;
};

class ShardStore {
 public:
  // Sets the parameters to the model's initial values and the slots to 0. For a large shard this takes seconds, so the
  // constructor calls `is_cancelled` between buckets; if it returns true, the constructor leaves the rest undone.
  // `is_cancelled` may be empty. Throws std::bad_alloc.
  ShardStore(const Layout& layout, ShardId shard, const StoreOptions& options,
             const std::function<bool()>& is_cancelled);
  ShardStore(const ShardStore&) = delete;

  // The memory that receives the bucket's payload. It has the bucket's length, and is valid as long as the store.
  std::span<float> landing(const Landing& landing, BucketId bucket);

  void apply(const Apply& action);
  void set(const SetParameters& action);
  void sum_and_apply(const SumAndApply& action);
  // Returns the squared norm of the plan's mean gradient. Keeps the sums, so that a SumAndApply of the same plan
  // doesn't read the gradients again.
  double norm2(const SumPlan& plan);

  // The bucket's current values, all of the same version.
  std::span<const float> parameters(BucketId bucket) const;

  // The values that a checkpoint holds: the parameters in the order of Layout, and each slot in the same order.
  std::span<float> parameters() { return parameters_.floats(); }
  std::size_t slots() const { return rule_.slots(); }
  std::span<float> slot(std::size_t i) { return slots_.floats().subspan(i * elements_, elements_); }
  // Begins a copy of the parameters (array 0) and slots as they are now; later updates don't change the copy. Returns
  // false if the store has no memory for a copy, or if the previous copy isn't whole yet or is still lent.
  bool begin_copy();
  // Copies the next bucket. Returns the copy once it is whole. Returns null before that, and the caller must call
  // again.
  std::shared_ptr<const ShardCopy> copy_bucket();
  // Makes and returns the whole copy at once; null if begin_copy() returns false.
  std::shared_ptr<const ShardCopy> copy();

  std::uint64_t bytes() const;  // size of all memory blocks, touched or not

 private:
  // A contiguous part of a bucket in which all variables are of the same kind.
  struct Run {
    std::uint64_t begin = 0;  // within the bucket
    std::uint64_t elements = 0;
    VariableKind kind = VariableKind::kTrainable;
  };
  struct OwnBucket {
    std::uint64_t begin = 0;  // within the shard
    std::uint64_t elements = 0;
    std::vector<Run> runs;
    bool is_owed = false;  // true: the copy that is being made still lacks this bucket
  };

  void copy_owed(OwnBucket& bucket);
  const OwnBucket& own(BucketId bucket) const;
  void initialize_all(const Layout& layout, std::uint64_t seed, const std::function<bool()>& is_cancelled);
  void weigh(const SumPlan& plan, BucketId bucket);
  void update(BucketId id, const UpdateAt& at, double scale, bool is_measured);
  std::span<const update::WeightedGradient> part_of(const Run& run);
  void mix_state(std::span<const update::WeightedGradient> pushed, float weight, std::span<float> values);

  // Constant.
  const update::UpdateRule rule_;
  const std::uint32_t pushes_;      // sync: how many pushes of a worker may wait for a commit
  std::uint64_t elements_ = 0;      // of the shard
  std::uint64_t largest_ = 0;       // elements of the largest bucket
  std::vector<OwnBucket> buckets_;  // by BucketId; elements 0 = another shard's

  Arena arena_{ArenaKind::kPrivate};
  Memory parameters_;
  Memory slots_;    // one slot after the other, each laid out like the parameters
  Memory staging_;  // sync: the staged pushes, by (place, push, element)
  Memory sums_;     // sync with clipping by the global norm: the sums that norm2() computed, by element
  Memory frames_;   // one buffer per place (Landing::Kind::kFrame, or kSpare in sync)
  std::shared_ptr<ShardCopy> copy_;
  std::size_t next_to_copy_ = 0;  // all buckets before this one are copied
  bool is_copying_ = false;
  std::vector<update::WeightedGradient> gradients_;  // the gradients of the action that is being carried out
  std::vector<update::WeightedGradient> part_;
  double total_weight_ = 1.0;
};

}  // namespace disttrain::psd
