// The bytes of one shard of a job: parameters, optimizer state and workers' pushes. Owned by the shard's thread. The
// store carries out the core's actions and decides nothing; same calls, same bits. All memory is taken in the
// constructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "common/layout.h"
#include "common/update/update_rule.h"
#include "psd/core/events.h"
#include "psd/store/memory_block.h"

namespace disttrain::psd {

struct StoreOptions {
  TrainSection train;
  std::uint64_t seed = 1;
  std::uint32_t places = 0;  // number of members to make memory for
  bool has_copy = false;     // make memory for a checkpoint's copy
  bool is_empty = false;     // parameters begin at 0, and the caller fills them
};

// Parameters and slots of one moment. Not written while it is lent.
class ShardCopy {
 public:
  ShardCopy(std::uint64_t elements, std::size_t slots) : elements_(elements), block_(elements * (1 + slots) * 4) {}
  std::span<float> array(std::size_t i) { return block_.floats().subspan(i * elements_, elements_); }
  std::span<const float> array(std::size_t i) const { return block_.floats().subspan(i * elements_, elements_); }
  std::size_t arrays() const { return elements_ == 0 ? 0 : block_.floats().size() / elements_; }
  std::span<float> all() { return block_.floats(); }

  // Lends the copy to readers on any thread. All their reads happen before is_lent() turns false.
  static std::shared_ptr<const ShardCopy> lend(const std::shared_ptr<ShardCopy>& copy) {
    copy->is_lent_.store(true, std::memory_order_relaxed);
    const auto give_back = [copy](const ShardCopy*) { copy->is_lent_.store(false, std::memory_order_release); };
    return std::shared_ptr<const ShardCopy>(copy.get(), give_back);
  }
  bool is_lent() const { return is_lent_.load(std::memory_order_acquire); }

 private:
  const std::uint64_t elements_;
  std::atomic<bool> is_lent_ = false;
  MemoryBlock block_;
};

class ShardStore {
 public:
  // Parameters begin with the model's initial values, slots at 0. For a large shard that takes seconds: the constructor
  // asks `is_cancelled` (which may be empty) between buckets, and on true leaves the rest undone. Throws
  // std::bad_alloc.
  ShardStore(const Layout& layout, ShardId shard, const StoreOptions& options,
             const std::function<bool()>& is_cancelled);
  ShardStore(const ShardStore&) = delete;

  // Where the bucket's payload is received; has the bucket's length. Valid as long as the store.
  std::span<float> landing(const Landing& landing, BucketId bucket);

  void apply(const Apply& action);
  void sum_and_apply(const SumAndApply& action);
  // Keeps the sums, so that a SumAndApply of the same plan doesn't read the gradients again.
  double norm2(const SumPlan& plan);

  // Current values. All values of a bucket have the same version.
  std::span<const float> parameters(BucketId bucket) const;

  // What a checkpoint holds, in its order: the parameters as in Layout, and each slot in the same order.
  std::span<float> parameters() { return parameters_.floats(); }
  std::size_t slots() const { return rule_.slots(); }
  std::span<float> slot(std::size_t i) { return slots_.floats().subspan(i * elements_, elements_); }
  // Begins a copy of parameters (array 0) and slots as they are now; updates that follow don't change it. False if no
  // memory was made for it, or if the last copy isn't whole yet or is still lent.
  bool begin_copy();
  // Copies the next bucket. Returns the copy once it is whole, before that null: call again.
  std::shared_ptr<const ShardCopy> copy_bucket();
  // The whole copy at once; null if begin_copy() returns false.
  std::shared_ptr<const ShardCopy> copy();

  std::uint64_t bytes() const;  // of all blocks, touched or not

 private:
  // A contiguous part of a bucket of one kind of variables.
  struct Run {
    std::uint64_t begin = 0;  // within the bucket
    std::uint64_t elements = 0;
    VariableKind kind = VariableKind::kTrainable;
  };
  struct OwnBucket {
    std::uint64_t begin = 0;  // within the shard
    std::uint64_t elements = 0;
    std::vector<Run> runs;
    bool is_owed = false;  // the copy under way still lacks this bucket's old values
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
  const std::uint32_t pushes_;      // sync: in flight per place
  std::uint64_t elements_ = 0;      // of the shard
  std::uint64_t largest_ = 0;       // elements of the largest bucket
  std::vector<OwnBucket> buckets_;  // by BucketId; elements 0 = another shard's

  MemoryBlock parameters_;
  MemoryBlock slots_;    // slot after slot, each laid out like the parameters
  MemoryBlock staging_;  // sync: (place, push, element)
  MemoryBlock sums_;     // sync with global norm clipping: by element, as norm2() computed them
  MemoryBlock frames_;   // (place, element): the frame buffer or, in sync, the spare
  std::shared_ptr<ShardCopy> copy_;
  std::size_t next_to_copy_ = 0;  // all buckets before it are copied
  bool is_copying_ = false;
  std::vector<update::WeightedGradient> gradients_;  // of the action being carried out
  std::vector<update::WeightedGradient> part_;
  double total_weight_ = 1.0;
};

}  // namespace disttrain::psd
