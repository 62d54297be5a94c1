// How the twin changes its expected parameters. State and the update rules that need norms of whole variables are done
// in another way than in the store.
#include "common/doubles.h"
#include "common/update/schedule.h"
#include "common/update/vector.h"
#include "tests/sim/shard_twin.h"

namespace disttrain::sim {

std::vector<ShardTwin::Part> ShardTwin::kinds_in(BucketId bucket) const {
  std::vector<Part> parts;
  for (const Slice& slice : slices_of(job_.layout, bucket)) {
    const bool is_state = job_.layout.model.variables[slice.variable].kind == VariableKind::kState;
    if (parts.empty() || parts.back().is_state != is_state || rule_.is_by_variable())
      parts.push_back(Part{slice.bucket_begin, 0, is_state});
    parts.back().words += slice.words;
  }
  return parts;
}

template <typename T>
update::SlotSpansOf<T> ShardTwin::slots_at(std::size_t at, std::size_t words) {
  update::SlotSpansOf<T> slots;
  for (std::size_t i = 0; i < rule_.slots(); ++i)
    slots[i] = values_in<T>(std::span(expected_slots_[i]).subspan(at, words));
  return slots;
}

void ShardTwin::apply(const Member& from, BucketId bucket, std::span<const float> payload) {
  const double rate = update::learning_rate(job_.config.train, version_.value, roster_.members.size());
  double state_weight = 1.0 / static_cast<double>(roster_.members.size());
  if (job_.config.train.state == StateRule::kLowestRank) {
    const bool is_lowest = !roster_.members.empty() && roster_.members.front() == from;
    state_weight = is_lowest ? 1.0 : 0.0;
  }
  const std::vector<float> before = expected_;
  const std::vector<std::vector<float>> slots_before = expected_slots_;
  std::size_t at = 0;
  for (const BucketId own : buckets_) {
    if (own == bucket) update(bucket, at, {rate, version_.value, 1.0}, {{payload, 1.0F}}, state_weight);
    at += job_.layout.buckets[own.value].words;
  }
  if (expects_finite()) return;
  expected_ = before;
  expected_slots_ = slots_before;
}

bool ShardTwin::expects_finite() const {
  std::size_t at = 0;
  for (const BucketId bucket : buckets_) {
    const std::size_t words = job_.layout.buckets[bucket.value].words;
    if (!is_finite(bucket, std::span(expected_).subspan(at, words))) return false;
    for (const std::vector<float>& slot : expected_slots_)
      if (!is_finite(bucket, std::span(slot).subspan(at, words))) return false;
    at += words;
  }
  return true;
}

// Updates a bucket that begins at index `at` of expected_.
void ShardTwin::update(BucketId bucket, std::size_t at, const update::UpdateStep& step,
                       const std::vector<Pushed>& gradients, double state_weight) {
  with_type(dtype_of(job_.layout, bucket), [&]<typename T>(T) {
    for (const Part& part : kinds_in(bucket))
      update_part<T>(part, at + part.begin, step, gradients, static_cast<T>(state_weight));
  });
}

// Updates a part that begins at index `at` of expected_. State becomes the pushed value, or moves a part of the way to
// it; the mean of several workers is computed in the order of their ranks.
template <typename T>
void ShardTwin::update_part(const Part& part, std::size_t at, const update::UpdateStep& step,
                            const std::vector<Pushed>& gradients, T state_weight) {
  const std::span<T> values = values_in<T>(std::span(expected_).subspan(at, part.words));
  std::vector<update::WeightedGradientOf<T>> pushed = part_of<T>(gradients, part);
  if (!part.is_state && rule_.is_by_variable()) return;  // see update_variables()
  if (!part.is_state) {
    rule_.apply_sum<T>(step, values, pushed, slots_at<T>(at, part.words));
    return average<T>(at, part.words, false);
  }
  if (job_.config.train.state == StateRule::kLowestRank) pushed.resize(1);
  for (std::size_t i = 0; i < values.size() && state_weight > T{0}; ++i) {
    double sum = 0;
    double total = 0;
    for (const update::WeightedGradientOf<T>& one : pushed) {
      sum += static_cast<double>(one.weight) * static_cast<double>(one.values[i]);
      total += static_cast<double>(one.weight);
    }
    const T mean = pushed.size() > 1 ? static_cast<T>(sum / total) : pushed.front().values[i];
    values[i] = state_weight == T{1} ? mean : values[i] + state_weight * (mean - values[i]);
  }
  average<T>(at, part.words, true);
}

template <typename T>
std::vector<update::WeightedGradientOf<T>> ShardTwin::part_of(const std::vector<Pushed>& gradients, const Part& part) {
  std::vector<update::WeightedGradientOf<T>> parts;
  for (const Pushed& all : gradients)
    parts.push_back({values_in<T>(all.words.subspan(part.begin, part.words)), static_cast<T>(all.weight)});
  return parts;
}

template <typename T>
void ShardTwin::average(std::size_t at, std::size_t words, bool is_state) {
  const double keep = job_.config.evaluate.average;
  if (keep == 0.0) return;
  const std::span<T> averages = values_in<T>(std::span(expected_slots_.back()).subspan(at, words));
  const std::span<const T> values = values_in<T>(std::span<const float>(expected_).subspan(at, words));
  for (std::size_t i = 0; i < values.size(); ++i)
    averages[i] = is_state ? values[i] : static_cast<T>(keep) * averages[i] + static_cast<T>(1.0 - keep) * values[i];
}

double ShardTwin::norm2_of(const std::vector<const Staged*>& parts) const {
  double norm2 = 0.0;
  for (const BucketId bucket : buckets_) {
    std::vector<Pushed> gradients;
    const double total = weigh(parts, bucket, gradients);
    if (gradients.empty()) continue;
    with_type(dtype_of(job_.layout, bucket), [&]<typename T>(T) {
      for (const Part& part : kinds_in(bucket)) {
        if (part.is_state) continue;
        std::vector<T> sums(part.words * sizeof(float) / sizeof(T));
        norm2 += update::squared_norm_of_sum<T>(part_of<T>(gradients, part), 1.0 / total, sums);
      }
    });
  }
  return norm2;
}

// For update rules that need norms of whole variables. Gathers the words of each variable from the shard's buckets.
// `step` has the scale for the mean gradient.
void ShardTwin::update_variables(const update::UpdateStep& step, const std::vector<const Staged*>& parts) {
  std::map<std::uint32_t, std::vector<std::size_t>> words;  // by variable: indices into expected_
  std::vector<std::vector<float>> pushed(parts.size());     // by part: the gradient, in the order of expected_
  std::vector<float> weights(parts.size());
  double total = 0.0;
  std::size_t at = 0;
  for (const BucketId bucket : buckets_) {
    for (const Slice& slice : slices_of(job_.layout, bucket))
      for (std::size_t w = 0; w < slice.words; ++w) words[slice.variable].push_back(at + slice.bucket_begin + w);
    std::vector<Pushed> gradients;
    total = weigh(parts, bucket, gradients);
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      pushed[p].insert(pushed[p].end(), gradients[p].words.begin(), gradients[p].words.end());
      weights[p] = gradients[p].weight;
    }
    at += job_.layout.buckets[bucket.value].words;
  }
  if (total <= 0.0) return;
  const update::UpdateStep mean{step.learning_rate, step.t, step.gradient_scale / total};
  for (const auto& [variable, indices] : words) {
    const VariableSpec& spec = job_.layout.model.variables[variable];
    if (spec.kind == VariableKind::kState) continue;
    with_type(spec.dtype, [&, &own = indices]<typename T>(T) { update_variable<T>(mean, own, pushed, weights); });
  }
}

// Updates a variable as a whole, and puts its words back. `pushed` has the whole shard's gradient of each worker.
template <typename T>
void ShardTwin::update_variable(const update::UpdateStep& step, const std::vector<std::size_t>& indices,
                                const std::vector<std::vector<float>>& pushed, const std::vector<float>& weights) {
  // Words of doubles may be copied, but not assigned as floats.
  const auto gather = [&indices](const std::vector<float>& all) {
    std::vector<float> some(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) std::memcpy(&some[i], &all[indices[i]], sizeof(float));
    return some;
  };
  std::vector<float> values = gather(expected_);
  std::vector<std::vector<float>> slots;
  for (std::size_t s = 0; s < rule_.slots(); ++s) slots.push_back(gather(expected_slots_[s]));
  std::vector<std::vector<float>> gradients;
  for (const std::vector<float>& all : pushed) gradients.push_back(gather(all));
  std::vector<update::WeightedGradientOf<T>> weighted;
  for (std::size_t p = 0; p < gradients.size(); ++p)
    weighted.push_back({values_in<T>(std::span<const float>(gradients[p])), static_cast<T>(weights[p])});
  update::SlotSpansOf<T> spans;
  for (std::size_t s = 0; s < slots.size(); ++s) spans[s] = values_in<T>(std::span(slots[s]));
  rule_.apply_sum<T>(step, values_in<T>(std::span(values)), weighted, spans);
  constexpr std::size_t kWords = sizeof(T) / sizeof(float);
  const auto put_back = [&indices](const std::vector<float>& some, std::vector<float>& all) {
    for (std::size_t i = 0; i < indices.size(); ++i) std::memcpy(&all[indices[i]], &some[i], sizeof(float));
  };
  put_back(values, expected_);
  for (std::size_t s = 0; s < slots.size(); ++s) put_back(slots[s], expected_slots_[s]);
  for (std::size_t i = 0; i < indices.size(); i += kWords) average<T>(indices[i], kWords, false);
}

}  // namespace disttrain::sim
