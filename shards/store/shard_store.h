// The tensor bytes of one shard: parameters, slots and workers' pushes. Only the shard's thread uses the store. The
// store carries out the core's actions and decides nothing, so the same calls give the same bits. The constructor takes
// all memory. All spans of floats count words; see common/layout.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "common/config/job_config.h"
#include "common/layout.h"
#include "common/os/arena.h"
#include "common/update/update_rule.h"
#include "shards/core/events.h"

namespace disttrain::shards {

// Called before each bucket of a pass over all of them.
using GoesOn = std::function<void()>;

struct StoreOptions {
  TrainSection train;
  std::uint64_t seed = 1;
  std::uint32_t places = 0;  // number of workers to make memory for
  bool has_copy = false;     // true: make memory for a checkpoint's copy
  bool is_empty = false;     // true: parameters begin at 0, because the caller will fill them
  double average = 0.0;      // evaluate.average; 0: the store keeps no averages
};

// A copy of the parameters and slots at one moment. Nobody writes to it while it is lent.
class ShardCopy {
 public:
  ShardCopy(std::uint64_t words, std::size_t slots)
      : words_(words), block_(arena_, words * (1 + slots) * sizeof(float), Paging::kOnDemand) {}
  std::span<float> array(std::size_t i) { return block_.floats().subspan(i * words_, words_); }
  std::span<const float> array(std::size_t i) const { return block_.floats().subspan(i * words_, words_); }
  std::size_t arrays() const { return words_ == 0 ? 0 : block_.floats().size() / words_; }
  std::span<float> all() { return block_.floats(); }

  // Lends the copy to readers on any thread. Once is_lent() returns false again, all their reads are over.
  static std::shared_ptr<const ShardCopy> lend(const std::shared_ptr<ShardCopy>& copy) {
    copy->is_lent_.store(true, std::memory_order_relaxed);
    const auto give_back = [copy](const ShardCopy*) { copy->is_lent_.store(false, std::memory_order_release); };
    return std::shared_ptr<const ShardCopy>(copy.get(), give_back);
  }
  bool is_lent() const { return is_lent_.load(std::memory_order_acquire); }

 private:
  const std::uint64_t words_;
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
  // Instead of landing(): the payload is in memory of the worker at the other end of the channel. The store reads it
  // there, and keeps `keeps` until it has done so or another payload takes the place. Returns where it will read it.
  // That is in landing(), if the payload is doubles that don't begin at a multiple of 8 bytes.
  std::span<const float> lend(const Landing& landing, BucketId bucket, ChannelId lender, std::span<const float> payload,
                              std::shared_ptr<const void> keeps);
  // Copies what this channel's worker has lent. From then on the worker may write to its memory.
  void take_over(ChannelId lender);

  // An update returns whether all that it has written is finite. prepare() returns a bucket whose slots aren't.
  bool apply(const Apply& action);
  void set(const SetParameters& action);
  bool sum_and_apply(const SumAndApply& action);
  // For update rules that need norms of whole variables: the first half of the plan's update. Changes slots but no
  // parameters.
  std::optional<BucketId> prepare(const SumPlan& plan, const GoesOn& goes_on = {});
  // Whether the newest apply(), prepare() or sum_and_apply() has read memory of a worker.
  bool has_read_lent() const { return has_read_lent_; }

  // Whether an update of the bucket might give a number that isn't finite. `gradients`: the largest magnitude that the
  // sum of the gradients may have. The answer is false, and costs nothing, as long as all numbers are of a usual size.
  bool may_overflow(BucketId bucket, double gradients);
  // Whether the update would give only finite numbers. Computes the update, but changes nothing. The second function
  // looks at all buckets, and computes nothing if they can't overflow.
  bool foresees_finite(const Apply& action);
  bool foresees_finite(const SumPlan& plan, const GoesOn& goes_on = {});
  // Returns the squared norm of the plan's mean gradient. Keeps the sums, so that a SumAndApply of the same plan
  // doesn't read the gradients again.
  double norm2(const SumPlan& plan, const GoesOn& goes_on = {});

  // The largest magnitude of the values that landing() has received for the bucket. Not finite if a value isn't.
  double largest(BucketId bucket, std::span<const float> payload) const;

  // The bucket's current values, all of the same version.
  std::span<const float> parameters(BucketId bucket) const;

  // The bucket's moving averages; its parameters if the store keeps no averages. State variables have no average: their
  // values are copied.
  std::span<const float> averages(BucketId bucket) const;

  // The values that a checkpoint holds: the parameters in the order of Layout, and each slot in the same order. The
  // last slot is the average, if the store keeps one.
  std::span<float> parameters() { return parameters_.floats(); }
  std::size_t slots() const { return rule_.slots() + (average_ > 0.0 ? 1 : 0); }
  bool has_average() const { return average_ > 0.0; }
  // Lets the averages begin as the present parameters. The constructor has done this for the initial values.
  // Calls `is_cancelled` as the constructor does.
  void begin_averages(const std::function<bool()>& is_cancelled = {});
  // Replaces each value outside its variable's bounds, and each such average, by the nearer bound. update does this for
  // the values that it changes; values from a file need it. Calls `is_cancelled` as the constructor does.
  void keep_bounds(const std::function<bool()>& is_cancelled = {});
  std::span<float> slot(std::size_t i) { return slots_.floats().subspan(i * stride_, words_); }
  // Begins a copy of the parameters (array 0) and slots as they are now; later updates don't change the copy. Returns
  // false if the store has no memory for a copy, or if the previous copy isn't whole yet or is still lent.
  bool begin_copy();
  // Copies the next bucket. Returns the copy once it is whole. Returns null before that, and the caller must call
  // again.
  std::shared_ptr<const ShardCopy> copy_bucket();
  // Makes and returns the whole copy at once; null if begin_copy() returns false.
  std::shared_ptr<const ShardCopy> copy();

  std::uint64_t bytes() const;  // size of all memory blocks, touched or not
  // The arena of all landings.
  const Arena& arena() const { return arena_; }

 private:
  // A contiguous part of a bucket in which all variables are of the same kind and have the same bounds, and weight
  // decay is for all of them or for none. If the update rule needs norms of whole variables, it is a part of one
  // variable.
  struct Run {
    std::uint64_t begin = 0;  // within the bucket
    std::uint64_t words = 0;
    VariableKind kind = VariableKind::kTrainable;
    bool is_decayed = true;
    std::uint32_t variable = 0;  // of its first element
    Bounds bounds;
  };
  struct OwnBucket {
    std::uint64_t begin = 0;  // within the shard
    std::uint64_t words = 0;
    std::uint32_t number = 0;  // among the shard's buckets
    DType dtype = DType::kFloat32;
    std::vector<Run> runs;
    bool is_owed = false;  // true: the copy that is being made still lacks this bucket
    // True: all parameters and slots were small (common/update/magnitude.h) after the newest update. False: not known.
    // Between prepare() and the update: whether the slots are small.
    bool is_small = false;
  };

  // Where the payload that came for this landing is.
  std::span<const float> payload(const Landing& landing, BucketId bucket);
  struct Lent {
    std::span<const float> payload;  // empty: the payload is in the landing's memory
    std::shared_ptr<const void> keeps;
    ChannelId lender;
    Landing landing;
    BucketId bucket;
  };
  Lent& lent(const Landing& landing, BucketId bucket);
  std::span<float> memory_at(const Landing& landing, BucketId bucket);
  void copy_owed(OwnBucket& bucket);
  const OwnBucket& own(BucketId bucket) const;
  void initialize_all(const Layout& layout, std::uint64_t seed, const std::function<bool()>& is_cancelled);
  void weigh(const SumPlan& plan, BucketId bucket);
  // The functions that update return whether all that they have written is small.
  bool update(BucketId id, const UpdateAt& at, double scale, bool is_measured);
  // T is the type of the bucket's elements, float or double.
  template <typename T>
  bool update_runs(const OwnBucket& bucket, const UpdateAt& at, double scale, bool is_measured);
  template <typename T>
  bool prepare_runs(const OwnBucket& bucket, const SumPlan& plan);
  // Calls `test` for all parameters and slots of the bucket, and returns whether it was true for all.
  template <typename Test>
  bool all_values(const OwnBucket& bucket, const Test& test);
  bool is_finite(const OwnBucket& bucket);
  bool would_be_finite(const OwnBucket& bucket, const UpdateAt& at, double scale);
  template <typename T>
  bool would_runs_be_finite(const OwnBucket& bucket, const UpdateAt& at, double scale);
  template <typename T>
  void foresee_norms(const OwnBucket& bucket, const SumPlan& plan);
  template <typename T>
  void add_norm2(const OwnBucket& bucket, double& sum);
  template <typename T>
  std::span<T> values_of(Memory& memory, std::uint64_t array, const OwnBucket& bucket, const Run& run);
  template <typename T>
  std::span<const update::WeightedGradientOf<T>> part_of(const Run& run);
  template <typename T>
  std::span<const update::WeightedGradientOf<T>> gradients_of(const OwnBucket& bucket, const Run& run,
                                                              bool is_measured);
  template <typename T>
  void follow(const OwnBucket& bucket, const Run& run);
  template <typename T>
  update::SlotSpansOf<T> slots_of_run(const OwnBucket& bucket, const Run& run);
  template <typename T>
  bool mix_state(std::span<const update::WeightedGradientOf<T>> pushed, T weight, std::span<const T> values,
                 std::span<T> out);

  // Constant.
  const update::UpdateRule rule_;
  const StateRule state_rule_;
  const double average_;
  const bool has_usual_rate_;       // the learning rate is so small that small numbers give no large steps
  const std::uint32_t pushes_;      // sync: how many pushes of a worker may wait for a commit
  std::uint64_t words_ = 0;         // of the shard
  std::uint64_t stride_ = 0;        // words_, rounded up so that each array begins at an even word
  std::uint64_t largest_ = 0;       // words of the largest bucket, rounded up in the same way
  std::vector<OwnBucket> buckets_;  // by BucketId; words 0 = another shard's
  std::uint32_t own_buckets_ = 0;   // how many of them are this shard's

  Arena arena_{ArenaKind::kPrivate};
  Memory parameters_;
  Memory slots_;    // one slot after the other, each laid out like the parameters; the average is the last one
  Memory staging_;  // sync: the staged pushes, by (place, push, word)
  Memory sums_;     // sync with clipping by the global norm: the sums that norm2() computed, by word
  Memory frames_;   // one buffer per place (Landing::Kind::kFrame, or kSpare in sync)
  // What is lent instead: first by place, for frames_; then by (place, push, bucket), for staging_.
  std::vector<Lent> lent_;
  std::shared_ptr<ShardCopy> copy_;
  std::size_t next_to_copy_ = 0;  // all buckets before this one are copied
  bool is_copying_ = false;
  // The words of a gradient of the action that is being carried out.
  struct PushedGradient {
    std::span<const float> words;
    double weight = 1.0;
  };
  std::vector<PushedGradient> gradients_;
  // The parts of gradients_ that belong to one run. The one of the run's type is used.
  std::tuple<std::vector<update::WeightedGradientOf<float>>, std::vector<update::WeightedGradientOf<double>>> parts_;
  double total_weight_ = 1.0;
  bool has_read_lent_ = false;
  // By variable: the norms that prepare() has computed. Empty if the update rule needs none.
  std::vector<update::LayerNorms> norms_;
};

}  // namespace disttrain::shards
