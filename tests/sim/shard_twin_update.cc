// How the twin changes its expected parameters. State and the update rules that need norms of whole variables are done
// in another way than in the store.
#include "common/update/schedule.h"
#include "tests/sim/shard_twin.h"

namespace disttrain::sim {

std::vector<ShardTwin::Part> ShardTwin::kinds_in(BucketId bucket) const {
  std::vector<Part> parts;
  for (const Slice& slice : slices_of(job_.layout, bucket)) {
    const bool is_state = job_.layout.model.variables[slice.variable].kind == VariableKind::kState;
    if (parts.empty() || parts.back().is_state != is_state || rule_.is_by_variable())
      parts.push_back(Part{slice.bucket_begin, 0, is_state});
    parts.back().elements += slice.words;
  }
  return parts;
}

void ShardTwin::apply(const Member& from, BucketId bucket, std::span<const float> payload) {
  const double rate = update::learning_rate(job_.config.train, version_.value, roster_.members.size());
  float state_weight = 1.0F / static_cast<float>(roster_.members.size());
  if (job_.config.train.state == StateRule::kLowestRank) {
    const bool is_lowest = !roster_.members.empty() && roster_.members.front() == from;
    state_weight = is_lowest ? 1.0F : 0.0F;
  }
  std::size_t at = 0;
  for (const BucketId own : buckets_) {
    if (own == bucket) update(bucket, at, {rate, version_.value, 1.0}, {{payload, 1.0F}}, state_weight);
    at += job_.layout.buckets[own.value].words;
  }
}

// Updates a bucket that begins at index `at` of expected_. State becomes the pushed value, or moves a part of the way
// to it; the mean of several workers is computed in the order of their ranks.
void ShardTwin::update(BucketId bucket, std::size_t at, const update::UpdateStep& step,
                       const std::vector<update::WeightedGradient>& gradients, float state_weight) {
  const bool is_first_only = job_.config.train.state == StateRule::kLowestRank;
  for (const Part& part : kinds_in(bucket)) {
    const auto values = std::span(expected_).subspan(at + part.begin, part.elements);
    std::vector<update::WeightedGradient> pushed;
    for (const update::WeightedGradient& all : gradients)
      pushed.push_back({all.values.subspan(part.begin, part.elements), all.weight});
    if (!part.is_state && rule_.is_by_variable()) continue;  // see update_variables()
    if (!part.is_state) {
      rule_.apply_sum(step, values, pushed, slots_at(at + part.begin, part.elements));
      average(at + part.begin, part.elements, false);
      continue;
    }
    if (is_first_only) pushed.resize(1);
    for (std::size_t i = 0; i < values.size() && state_weight > 0.0F; ++i) {
      float sum = 0.0F;
      float total = 0.0F;
      for (const update::WeightedGradient& one : pushed) {
        sum += one.weight * one.values[i];
        total += one.weight;
      }
      const float mean = pushed.size() > 1 ? sum / total : pushed.front().values[i];
      values[i] = state_weight == 1.0F ? mean : values[i] + state_weight * (mean - values[i]);
    }
    average(at + part.begin, part.elements, true);
  }
}

void ShardTwin::average(std::size_t at, std::size_t elements, bool is_state) {
  const double keep = job_.config.evaluate.average;
  if (keep == 0.0) return;
  std::vector<float>& averages = expected_slots_.back();
  for (std::size_t i = at; i < at + elements; ++i)
    averages[i] = is_state ? expected_[i]
                           : static_cast<float>(keep) * averages[i] + static_cast<float>(1.0 - keep) * expected_[i];
}

// For update rules that need norms of whole variables. Gathers each variable from the shard's buckets, updates it as a
// whole, and puts it back. `step` has the scale for the mean gradient.
void ShardTwin::update_variables(const update::UpdateStep& step, const std::vector<const Staged*>& parts) {
  std::map<std::uint32_t, std::vector<std::size_t>> elements;  // by variable: indices into expected_
  std::vector<std::vector<float>> pushed(parts.size());        // by part: the gradient, in the order of expected_
  std::vector<float> weights(parts.size());
  double total = 0.0;
  std::size_t at = 0;
  for (const BucketId bucket : buckets_) {
    for (const Slice& slice : slices_of(job_.layout, bucket))
      for (std::size_t e = 0; e < slice.words; ++e) elements[slice.variable].push_back(at + slice.bucket_begin + e);
    std::vector<update::WeightedGradient> gradients;
    total = weigh(parts, bucket, gradients);
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      pushed[p].insert(pushed[p].end(), gradients[p].values.begin(), gradients[p].values.end());
      weights[p] = gradients[p].weight;
    }
    at += job_.layout.buckets[bucket.value].words;
  }
  if (total <= 0.0) return;
  for (const auto& [variable, indices] : elements) {
    if (job_.layout.model.variables[variable].kind == VariableKind::kState) continue;
    const auto gather = [&indices = indices](const std::vector<float>& all) {
      std::vector<float> some;
      for (const std::size_t i : indices) some.push_back(all[i]);
      return some;
    };
    std::vector<float> values = gather(expected_);
    std::vector<std::vector<float>> slots;
    for (std::size_t s = 0; s < rule_.slots(); ++s) slots.push_back(gather(expected_slots_[s]));
    std::vector<std::vector<float>> gradients;
    for (const std::vector<float>& all : pushed) gradients.push_back(gather(all));
    std::vector<update::WeightedGradient> weighted;
    for (std::size_t p = 0; p < gradients.size(); ++p) weighted.push_back({gradients[p], weights[p]});
    update::SlotSpans spans;
    for (std::size_t s = 0; s < slots.size(); ++s) spans[s] = slots[s];
    rule_.apply_sum({step.learning_rate, step.t, step.gradient_scale / total}, values, weighted, spans);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      expected_[indices[i]] = values[i];
      for (std::size_t s = 0; s < slots.size(); ++s) expected_slots_[s][indices[i]] = slots[s][i];
      average(indices[i], 1, false);
    }
  }
}

}  // namespace disttrain::sim
