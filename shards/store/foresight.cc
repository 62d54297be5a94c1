// Finds out whether an update would give only finite numbers, before it changes anything. Then the whole step can be
// skipped, on all shards alike. (In async and ssp, the frame can be skipped.) As long as gradients, parameters and
// slots are of a usual size, no update can give an infinity or a NaN, and nothing is computed here.
#include <algorithm>
#include <array>
#include <cmath>

#include "common/doubles.h"
#include "common/mutant.h"
#include "common/update/magnitude.h"
#include "shards/store/shard_store.h"

namespace disttrain::shards {
namespace {

constexpr std::size_t kElements = 2048;  // of a block

// Copies of a block of parameters and slots, to compute an update with.
template <typename T>
class Scratch {
 public:
  void copy(std::span<const T> parameters, const update::SlotSpansOf<T>& slots, std::size_t begin, std::size_t size) {
    parameters_ = std::span(memory_[0]).first(size);
    std::ranges::copy(parameters.subspan(begin, size), parameters_.begin());
    for (std::size_t s = 0; s < slots.size(); ++s) {
      if (slots[s].empty()) continue;
      slots_[s] = std::span(memory_[1 + s]).first(size);
      std::ranges::copy(slots[s].subspan(begin, size), slots_[s].begin());
    }
  }
  std::span<T> parameters() { return parameters_; }
  const update::SlotSpansOf<T>& slots() const { return slots_; }
  bool is_finite() const {
    bool all = update::all_finite<T>(parameters_);
    for (const std::span<T>& slot : slots_) all = all && update::all_finite<T>(slot);
    return all;
  }

 private:
  std::array<std::array<T, kElements>, 1 + update::kMaxSlots> memory_;
  std::span<T> parameters_;
  update::SlotSpansOf<T> slots_;
};

template <typename T>
std::vector<update::WeightedGradientOf<T>> block_of(std::span<const update::WeightedGradientOf<T>> gradients,
                                                    std::size_t begin, std::size_t size) {
  std::vector<update::WeightedGradientOf<T>> part;
  for (const auto& gradient : gradients) part.push_back({gradient.values.subspan(begin, size), gradient.weight});
  return part;
}

}  // namespace

bool ShardStore::foresees_finite(const Apply& action) {
  if (DISTTRAIN_MUTANT(kOverflowUnseen)) return true;
  gradients_.assign(1, PushedGradient{payload(action.landing, action.bucket), 1.0});
  total_weight_ = 1.0;
  return would_be_finite(own(action.bucket), action.at, 1.0);
}

bool ShardStore::foresees_finite(const SumPlan& plan, const GoesOn& goes_on) {
  if (DISTTRAIN_MUTANT(kOverflowUnseen)) return true;
  double gradients = 0.0;
  for (const SumTerm& term : plan.terms) gradients += static_cast<double>(term.examples) * term.largest;
  bool may = false;
  for (std::uint32_t id = 0; id < buckets_.size(); ++id)
    may = may || (buckets_[id].words > 0 && may_overflow(BucketId(id), gradients));
  if (!may) return true;
  if (rule_.is_by_variable()) {
    std::fill(norms_.begin(), norms_.end(), update::LayerNorms());
    for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
      if (buckets_[id].words == 0) continue;
      if (goes_on) goes_on();
      weigh(plan, BucketId(id));
      with_type(buckets_[id].dtype, [&]<typename T>(T) { foresee_norms<T>(buckets_[id], plan); });
    }
  }
  for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
    if (buckets_[id].words == 0) continue;
    if (goes_on) goes_on();
    weigh(plan, BucketId(id));
    if (!would_be_finite(buckets_[id], plan.at, plan.scale)) return false;
  }
  return true;
}

bool ShardStore::would_be_finite(const OwnBucket& bucket, const UpdateAt& at, double scale) {
  return with_type(bucket.dtype, [&]<typename T>(T) { return would_runs_be_finite<T>(bucket, at, scale); });
}

template <typename T>
bool ShardStore::would_runs_be_finite(const OwnBucket& bucket, const UpdateAt& at, double scale) {
  Scratch<T> scratch;
  for (const Run& run : bucket.runs) {
    const update::UpdateStep step{at.learning_rate, at.count, scale / total_weight_, run.is_decayed};
    const std::span<const T> values = values_of<T>(parameters_, 0, bucket, run);
    const update::SlotSpansOf<T> slots = slots_of_run<T>(bucket, run);
    for (std::size_t begin = 0; begin < values.size(); begin += kElements) {
      const std::size_t size = std::min(kElements, values.size() - begin);
      const auto gradients = block_of<T>(part_of<T>(run), begin, size);
      scratch.copy(values, slots, begin, size);
      if (run.kind == VariableKind::kState) {
        mix_state<T>(gradients, static_cast<T>(at.state_weight), values.subspan(begin, size), scratch.parameters());
      } else if (rule_.is_by_variable()) {
        update::LayerNorms unused;
        rule_.prepare_sum<T>(step, scratch.parameters(), gradients, scratch.slots(), unused);
        rule_.finish<T>(step, norms_[run.variable].trust(), scratch.parameters(), scratch.slots());
      } else {
        rule_.apply_sum<T>(step, scratch.parameters(), gradients, scratch.slots());
      }
      if (!scratch.is_finite()) return false;
    }
  }
  return true;
}

// Adds to norms_ what prepare() would add.
template <typename T>
void ShardStore::foresee_norms(const OwnBucket& bucket, const SumPlan& plan) {
  Scratch<T> scratch;
  for (const Run& run : bucket.runs) {
    if (run.kind == VariableKind::kState) continue;
    const update::UpdateStep step{plan.at.learning_rate, plan.at.count, plan.scale / total_weight_, run.is_decayed};
    const std::span<const T> values = values_of<T>(parameters_, 0, bucket, run);
    for (std::size_t begin = 0; begin < values.size(); begin += kElements) {
      const std::size_t size = std::min(kElements, values.size() - begin);
      scratch.copy(values, slots_of_run<T>(bucket, run), begin, size);
      rule_.prepare_sum<T>(step, scratch.parameters(), block_of<T>(part_of<T>(run), begin, size), scratch.slots(),
                           norms_[run.variable]);
    }
  }
}

}  // namespace disttrain::shards
