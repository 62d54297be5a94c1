#include "psd/store/shard_store.h"

#include <algorithm>

#include "common/check.h"
#include "common/initialize.h"
#include "common/mutant.h"
#include "common/update/vector.h"
#include "psd/store/stream_copy.h"

namespace disttrain::psd {

namespace {

std::uint64_t largest_bucket(const Layout& layout, ShardId shard) {
  std::uint64_t largest = 0;
  for (BucketId bucket : buckets_of(layout, shard)) largest = std::max(largest, layout.buckets[bucket.value].elements);
  return largest;
}

std::uint64_t in_flight(const TrainSection& train) {
  return train.mode == Mode::kSync ? 1 + train.pipeline : 0;
}

bool clips_sums(const TrainSection& train) {
  return train.mode == Mode::kSync && train.clip.kind == ClipKind::kGlobalNorm;
}

}  // namespace

ShardStore::ShardStore(const Layout& layout, ShardId shard, const StoreOptions& options,
                       const std::function<bool()>& is_cancelled)
    : rule_(options.train),
      pushes_(static_cast<std::uint32_t>(in_flight(options.train))),
      elements_(shard_elements(layout, shard)),
      largest_(largest_bucket(layout, shard)),
      buckets_(layout.buckets.size()),
      parameters_(arena_, elements_ * sizeof(float), Paging::kOnDemand),
      slots_(arena_, elements_ * rule_.slots() * sizeof(float), Paging::kOnDemand),
      staging_(arena_, elements_ * options.places * in_flight(options.train) * sizeof(float), Paging::kOnDemand),
      sums_(arena_, elements_ * (clips_sums(options.train) ? sizeof(float) : 0), Paging::kOnDemand),
      frames_(arena_, largest_ * options.places * sizeof(float), Paging::kOnDemand) {
  gradients_.reserve(std::max(1U, options.places));
  part_.reserve(std::max(1U, options.places));
  for (BucketId id : buckets_of(layout, shard)) {
    OwnBucket& bucket = buckets_[id.value];
    bucket.begin = layout.buckets[id.value].shard_begin;
    bucket.elements = layout.buckets[id.value].elements;
    for (const Slice& slice : slices_of(layout, id)) {
      const VariableKind kind = layout.model.variables[slice.variable].kind;
      if (!bucket.runs.empty() && bucket.runs.back().kind == kind)
        bucket.runs.back().elements += slice.elements;
      else
        bucket.runs.push_back(Run{slice.bucket_begin, slice.elements, kind});
    }
  }
  if (!options.is_empty) initialize_all(layout, options.seed, is_cancelled);
  if (!options.has_copy) return;
  copy_ = std::make_shared<ShardCopy>(elements_, rule_.slots());
  // Touches the copy's memory now, so that a cut doesn't wait for page faults.
  constexpr std::size_t kTurn = std::size_t{4} << 20;
  for (std::size_t at = 0; at < copy_->all().size(); at += kTurn) {
    std::fill_n(copy_->all().begin() + static_cast<std::ptrdiff_t>(at), std::min(kTurn, copy_->all().size() - at),
                0.0F);
    if (is_cancelled && is_cancelled()) return;
  }
}

bool ShardStore::begin_copy() {
  if (copy_ == nullptr || is_copying_ || copy_->is_lent()) return false;
  for (OwnBucket& bucket : buckets_) bucket.is_owed = bucket.elements > 0;
  next_to_copy_ = 0;
  is_copying_ = true;
  return true;
}

std::shared_ptr<const ShardCopy> ShardStore::copy_bucket() {
  const auto is_owed = [](const OwnBucket& bucket) { return bucket.is_owed; };
  const auto from = buckets_.begin() + static_cast<std::ptrdiff_t>(next_to_copy_);
  const auto bucket = std::find_if(from, buckets_.end(), is_owed);
  next_to_copy_ = static_cast<std::size_t>(bucket - buckets_.begin());
  if (bucket != buckets_.end()) {
    copy_owed(*bucket);
    if (std::any_of(bucket, buckets_.end(), is_owed)) return nullptr;
  }
  is_copying_ = false;
  return ShardCopy::lend(copy_);
}

std::shared_ptr<const ShardCopy> ShardStore::copy() {
  if (!begin_copy()) return nullptr;
  while (true)
    if (std::shared_ptr<const ShardCopy> whole = copy_bucket()) return whole;
}

void ShardStore::copy_owed(OwnBucket& bucket) {
  bucket.is_owed = false;
  const auto part = [&bucket](std::span<float> values) { return values.subspan(bucket.begin, bucket.elements); };
  stream_copy(part(parameters()), part(copy_->array(0)));
  for (std::size_t i = 0; i < slots(); ++i) stream_copy(part(slot(i)), part(copy_->array(1 + i)));
}

void ShardStore::initialize_all(const Layout& layout, std::uint64_t seed, const std::function<bool()>& is_cancelled) {
  for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
    if (buckets_[id].elements == 0) continue;
    const auto values = parameters_.floats().subspan(buckets_[id].begin, buckets_[id].elements);
    for (const Slice& slice : slices_of(layout, BucketId(id)))
      initialize(layout.model.variables[slice.variable], seed, slice.variable_begin,
                 values.subspan(slice.bucket_begin, slice.elements));
    if (is_cancelled && is_cancelled()) return;
  }
}

const ShardStore::OwnBucket& ShardStore::own(BucketId bucket) const {
  DISTTRAIN_CHECK_LT(bucket.value, buckets_.size());
  const OwnBucket& found = buckets_[bucket.value];
  DISTTRAIN_CHECK_LT(0U, found.elements);
  return found;
}

std::span<float> ShardStore::landing(const Landing& landing, BucketId bucket) {
  const OwnBucket& own_bucket = own(bucket);
  if (landing.kind != Landing::Kind::kStaging)
    return frames_.floats().subspan(landing.place.value * largest_, own_bucket.elements);
  const std::uint64_t push = std::uint64_t{landing.place.value} * pushes_ + landing.push;
  return staging_.floats().subspan(push * elements_ + own_bucket.begin, own_bucket.elements);
}

std::span<const float> ShardStore::parameters(BucketId bucket) const {
  const OwnBucket& own_bucket = own(bucket);
  return parameters_.floats().subspan(own_bucket.begin, own_bucket.elements);
}

void ShardStore::apply(const Apply& action) {
  gradients_.assign(1, update::WeightedGradient{landing(action.landing, action.bucket), 1.0F});
  total_weight_ = 1.0;
  update(action.bucket, action.at, 1.0, false);
}

void ShardStore::set(const SetParameters& action) {
  const OwnBucket& bucket = own(action.bucket);
  std::ranges::copy(landing(action.landing, action.bucket),
                    parameters().subspan(bucket.begin, bucket.elements).begin());
}

// Sets the weights of the gradients g_i. If all batches are equal, the mean is sum(g_i) / n; otherwise it is sum(n_i
// g_i) / sum(n_i), where n_i is the number of examples of g_i.
void ShardStore::weigh(const SumPlan& plan, BucketId bucket) {
  const std::uint32_t first = plan.terms.front().examples;
  const bool equal =
      std::all_of(plan.terms.begin(), plan.terms.end(), [first](const SumTerm& t) { return t.examples == first; });
  gradients_.clear();
  total_weight_ = 0.0;
  for (const SumTerm& term : plan.terms) {
    const float weight = equal || DISTTRAIN_MUTANT(kMeanOfMeans) ? 1.0F : static_cast<float>(term.examples);
    gradients_.push_back(update::WeightedGradient{landing(term.landing, bucket), weight});
    total_weight_ += static_cast<double>(weight);
  }
}

void ShardStore::sum_and_apply(const SumAndApply& action) {
  weigh(*action.plan, action.bucket);
  update(action.bucket, action.plan->at, action.plan->scale, action.plan->is_measured);
}

// The parts of the current action's gradients that belong to this run (a part of a bucket).
std::span<const update::WeightedGradient> ShardStore::part_of(const Run& run) {
  part_.clear();
  for (const update::WeightedGradient& gradient : gradients_)
    part_.push_back({gradient.values.subspan(run.begin, run.elements), gradient.weight});
  return part_;
}

double ShardStore::norm2(const SumPlan& plan) {
  double sum = 0.0;
  for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
    if (buckets_[id].elements == 0) continue;
    weigh(plan, BucketId(id));
    for (const Run& run : buckets_[id].runs) {
      if (run.kind != VariableKind::kTrainable) continue;
      const auto sums = sums_.floats().subspan(buckets_[id].begin + run.begin, run.elements);
      sum += update::squared_norm_of_sum(part_of(run), 1.0 / total_weight_, sums);
    }
  }
  return sum;
}

void ShardStore::update(BucketId id, const UpdateAt& at, double scale, bool is_measured) {
  OwnBucket& bucket = buckets_[id.value];
  if (bucket.is_owed) copy_owed(bucket);
  for (const Run& run : bucket.runs) {
    const std::uint64_t begin = bucket.begin + run.begin;
    const auto values = parameters_.floats().subspan(begin, run.elements);
    if (run.kind == VariableKind::kState) {
      mix_state(part_of(run), static_cast<float>(at.state_weight), values);
      continue;
    }
    update::SlotSpans slots;
    for (std::size_t slot = 0; slot < rule_.slots(); ++slot)
      slots[slot] = slots_.floats().subspan(slot * elements_ + begin, run.elements);
    const update::UpdateStep step{at.learning_rate, at.count, scale / total_weight_};
    if (is_measured)
      rule_.apply(step, values, sums_.floats().subspan(begin, run.elements), slots);
    else
      rule_.apply_sum(step, values, part_of(run), slots);
  }
}

// Workers push state (batch-norm statistics) as values, not as gradients: values += weight * (mean - values). With
// weight 1 the result is exactly the mean.
void ShardStore::mix_state(std::span<const update::WeightedGradient> pushed, float weight, std::span<float> values) {
  const auto total = static_cast<float>(total_weight_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float sum = 0.0F;
    for (const update::WeightedGradient& part : pushed) sum += part.weight * part.values[i];
    const float mean = sum / total;
    values[i] = weight == 1.0F ? mean : values[i] + weight * (mean - values[i]);
  }
}

std::uint64_t ShardStore::bytes() const {
  return arena_.bytes() + (copy_ ? parameters_.size() + slots_.size() : 0);
}

}  // namespace disttrain::psd
