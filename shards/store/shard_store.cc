#include "shards/store/shard_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/check.h"
#include "common/doubles.h"
#include "common/initialize.h"
#include "common/mutant.h"
#include "common/stream_copy.h"
#include "common/update/magnitude.h"
#include "common/update/vector.h"

namespace disttrain::shards {

namespace {

std::uint64_t largest_bucket(const Layout& layout, ShardId shard) {
  std::uint64_t largest = 0;
  for (BucketId bucket : buckets_of(layout, shard)) largest = std::max(largest, layout.buckets[bucket.value].words);
  return largest;
}

std::uint64_t rounded_up_to_even(std::uint64_t words) {
  return words + words % 2;
}

// No job has such a large learning rate. Below it, one update of small numbers stays far below the limit of their type.
constexpr double kUsualRate = 1000.0;

// std::clamp() keeps a NaN, so a step that gave one doesn't look well.
template <typename T>
void clip_to(const Bounds& bounds, std::span<T> values) {
  if (bounds == Bounds()) return;
  const T low = static_cast<T>(bounds.low);
  const T high = static_cast<T>(bounds.high);
  for (T& value : values) value = std::clamp(value, low, high);
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
      state_rule_(options.train.state),
      average_(options.average),
      has_usual_rate_(options.train.optimizer.learning_rate < kUsualRate),
      pushes_(static_cast<std::uint32_t>(in_flight(options.train))),
      words_(shard_words(layout, shard)),
      stride_(rounded_up_to_even(words_)),
      largest_(rounded_up_to_even(largest_bucket(layout, shard))),
      buckets_(layout.buckets.size()),
      parameters_(arena_, words_ * sizeof(float), Paging::kOnDemand),
      slots_(arena_, stride_ * slots() * sizeof(float), Paging::kOnDemand),
      staging_(arena_, stride_ * options.places * in_flight(options.train) * sizeof(float), Paging::kOnDemand),
      sums_(arena_, words_ * (clips_sums(options.train) ? sizeof(float) : 0), Paging::kOnDemand),
      frames_(arena_, largest_ * options.places * sizeof(float), Paging::kOnDemand) {
  gradients_.reserve(std::max(1U, options.places));
  std::get<0>(parts_).reserve(std::max(1U, options.places));
  std::get<1>(parts_).reserve(std::max(1U, options.places));
  for (BucketId id : buckets_of(layout, shard)) {
    OwnBucket& bucket = buckets_[id.value];
    bucket.begin = layout.buckets[id.value].shard_begin;
    bucket.words = layout.buckets[id.value].words;
    bucket.number = own_buckets_++;
    bucket.dtype = dtype_of(layout, id);
    for (const Slice& slice : slices_of(layout, id)) {
      const VariableSpec& variable = layout.model.variables[slice.variable];
      const Run next{slice.bucket_begin,     slice.words,    variable.kind,
                     rule_.decays(variable), slice.variable, variable.bounds};
      const bool is_alike = !bucket.runs.empty() && bucket.runs.back().kind == next.kind &&
                            bucket.runs.back().is_decayed == next.is_decayed &&
                            bucket.runs.back().bounds == next.bounds;
      if (is_alike && !rule_.is_by_variable())
        bucket.runs.back().words += slice.words;
      else
        bucket.runs.push_back(next);
    }
  }
  const bool has_staging = staging_.size() > 0;
  lent_.resize(options.places * (1 + (has_staging ? std::size_t{pushes_} * own_buckets_ : 0)));
  if (rule_.is_by_variable()) norms_.resize(layout.model.variables.size());
  if (!options.is_empty) {
    initialize_all(layout, options.seed, is_cancelled);
    begin_averages(is_cancelled);
  }
  if (!options.has_copy) return;
  copy_ = std::make_shared<ShardCopy>(words_, slots());
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
  for (OwnBucket& bucket : buckets_) bucket.is_owed = bucket.words > 0;
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
  const auto copy = [&bucket](std::span<const float> from, std::span<float> to) {
    stream_copy(std::as_bytes(from.subspan(bucket.begin, bucket.words)),
                std::as_writable_bytes(to.subspan(bucket.begin, bucket.words)));
  };
  copy(parameters(), copy_->array(0));
  for (std::size_t i = 0; i < slots(); ++i) copy(slot(i), copy_->array(1 + i));
}

void ShardStore::initialize_all(const Layout& layout, std::uint64_t seed, const std::function<bool()>& is_cancelled) {
  for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
    if (buckets_[id].words == 0) continue;
    const auto values = parameters_.floats().subspan(buckets_[id].begin, buckets_[id].words);
    for (const Slice& slice : slices_of(layout, BucketId(id)))
      initialize(layout.model.variables[slice.variable], seed, slice.variable_begin,
                 values.subspan(slice.bucket_begin, slice.words));
    if (is_cancelled && is_cancelled()) return;
  }
}

const ShardStore::OwnBucket& ShardStore::own(BucketId bucket) const {
  DISTTRAIN_CHECK_LT(bucket.value, buckets_.size());
  const OwnBucket& found = buckets_[bucket.value];
  DISTTRAIN_CHECK_LT(0U, found.words);
  return found;
}

ShardStore::Lent& ShardStore::lent(const Landing& landing, BucketId bucket) {
  if (landing.kind != Landing::Kind::kStaging) return lent_[landing.place.value];
  const std::size_t push = std::size_t{landing.place.value} * pushes_ + landing.push;
  const std::size_t frames = lent_.size() / (1 + std::size_t{pushes_} * own_buckets_);
  return lent_[frames + push * own_buckets_ + own(bucket).number];
}

std::span<const float> ShardStore::lend(const Landing& at, BucketId bucket, ChannelId lender,
                                        std::span<const float> payload, std::shared_ptr<const void> keeps) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(payload.data()) % alignof(double) == 0;
  if (own(bucket).dtype == DType::kFloat64 && !is_aligned) {  // our workers lend no such payload
    const std::span<float> copy = landing(at, bucket);
    std::memcpy(copy.data(), payload.data(), payload.size_bytes());
    return copy;
  }
  lent(at, bucket) = Lent{payload, std::move(keeps), lender, at, bucket};
  return payload;
}

void ShardStore::take_over(ChannelId lender) {
  for (Lent& held : lent_) {
    if (held.payload.empty() || held.lender != lender) continue;
    if (DISTTRAIN_MUTANT(kLentForEver)) continue;
    std::memcpy(memory_at(held.landing, held.bucket).data(), held.payload.data(), held.payload.size_bytes());
    held = {};
  }
}

std::span<const float> ShardStore::payload(const Landing& at, BucketId bucket) {
  const Lent& held = lent(at, bucket);
  if (!held.payload.empty()) return held.payload;
  return memory_at(at, bucket);
}

std::span<float> ShardStore::landing(const Landing& landing, BucketId bucket) {
  lent(landing, bucket) = {};
  return memory_at(landing, bucket);
}

std::span<float> ShardStore::memory_at(const Landing& landing, BucketId bucket) {
  const OwnBucket& own_bucket = own(bucket);
  if (landing.kind != Landing::Kind::kStaging)
    return frames_.floats().subspan(landing.place.value * largest_, own_bucket.words);
  const std::uint64_t push = std::uint64_t{landing.place.value} * pushes_ + landing.push;
  return staging_.floats().subspan(push * stride_ + own_bucket.begin, own_bucket.words);
}

std::span<const float> ShardStore::parameters(BucketId bucket) const {
  const OwnBucket& own_bucket = own(bucket);
  return parameters_.floats().subspan(own_bucket.begin, own_bucket.words);
}

std::span<const float> ShardStore::averages(BucketId bucket) const {
  const OwnBucket& own_bucket = own(bucket);
  if (!has_average()) return parameters(bucket);
  return slots_.floats().subspan(rule_.slots() * stride_ + own_bucket.begin, own_bucket.words);
}

void ShardStore::begin_averages(const std::function<bool()>& is_cancelled) {
  if (!has_average()) return;
  for (const OwnBucket& bucket : buckets_) {
    if (bucket.words == 0) continue;
    std::ranges::copy(parameters().subspan(bucket.begin, bucket.words),
                      slot(rule_.slots()).subspan(bucket.begin).begin());
    if (is_cancelled && is_cancelled()) return;
  }
}

double ShardStore::largest(BucketId bucket, std::span<const float> payload) const {
  return with_type(own(bucket).dtype, [payload]<typename T>(T) {
    return static_cast<double>(update::largest_magnitude<T>(values_in<T>(payload)));
  });
}

void ShardStore::keep_bounds(const std::function<bool()>& is_cancelled) {
  for (const OwnBucket& bucket : buckets_) {
    if (bucket.words == 0) continue;
    with_type(bucket.dtype, [&]<typename T>(T) {
      for (const Run& run : bucket.runs) {
        clip_to<T>(run.bounds, values_of<T>(parameters_, 0, bucket, run));
        if (has_average()) clip_to<T>(run.bounds, values_of<T>(slots_, rule_.slots(), bucket, run));
      }
    });
    if (is_cancelled && is_cancelled()) return;
  }
}

bool ShardStore::apply(const Apply& action) {
  gradients_.assign(1, PushedGradient{payload(action.landing, action.bucket), 1.0});
  total_weight_ = 1.0;
  has_read_lent_ = !lent(action.landing, action.bucket).payload.empty();
  const bool is_small = update(action.bucket, action.at, 1.0, false);
  lent(action.landing, action.bucket) = {};
  return is_small || is_finite(own(action.bucket));
}

void ShardStore::set(const SetParameters& action) {
  const OwnBucket& bucket = own(action.bucket);
  const std::span<const float> values = payload(action.landing, action.bucket);
  std::ranges::copy(values, parameters().subspan(bucket.begin, bucket.words).begin());
  if (has_average()) std::ranges::copy(values, slot(rule_.slots()).subspan(bucket.begin).begin());
  buckets_[action.bucket.value].is_small = false;
  lent(action.landing, action.bucket) = {};
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
    const double weight = equal || DISTTRAIN_MUTANT(kMeanOfMeans) ? 1.0 : static_cast<double>(term.examples);
    gradients_.push_back(PushedGradient{payload(term.landing, bucket), weight});
    total_weight_ += weight;
  }
}

bool ShardStore::sum_and_apply(const SumAndApply& action) {
  weigh(*action.plan, action.bucket);
  const bool is_small = update(action.bucket, action.plan->at, action.plan->scale, action.plan->is_measured);
  has_read_lent_ = false;
  for (const SumTerm& term : action.plan->terms) {
    Lent& held = lent(term.landing, action.bucket);
    has_read_lent_ = has_read_lent_ || !held.payload.empty();
    held = {};  // read for the last time
  }
  return is_small || is_finite(own(action.bucket));
}

template <typename Test>
bool ShardStore::all_values(const OwnBucket& bucket, const Test& test) {
  return with_type(bucket.dtype, [&]<typename T>(T) {
    Run whole;
    whole.words = bucket.words;
    bool all = test(std::span<const T>(values_of<T>(parameters_, 0, bucket, whole)));
    for (std::size_t i = 0; i < rule_.slots(); ++i)
      all = all && test(std::span<const T>(values_of<T>(slots_, i, bucket, whole)));
    return all;
  });
}

bool ShardStore::is_finite(const OwnBucket& bucket) {
  if (DISTTRAIN_MUTANT(kOverflowUnseen)) return true;
  return all_values(bucket, []<typename T>(std::span<const T> values) { return update::all_finite<T>(values); });
}

bool ShardStore::may_overflow(BucketId id, double gradients) {
  OwnBucket& bucket = buckets_[id.value];
  return with_type(bucket.dtype, [&]<typename T>(T) {
    if (!has_usual_rate_ || !(gradients < static_cast<double>(update::kLargeGradient<T>))) return true;
    if (bucket.is_small) return false;
    bucket.is_small = all_values(bucket, []<typename U>(std::span<const U> values) {
      return update::largest_magnitude<U>(values) < update::kLarge<U>;  // false for a NaN
    });
    return !bucket.is_small;
  });
}

// The part of an array that belongs to this run (a part of a bucket). `memory` holds arrays that are laid out like the
// parameters.
template <typename T>
std::span<T> ShardStore::values_of(Memory& memory, std::uint64_t array, const OwnBucket& bucket, const Run& run) {
  return values_in<T>(memory.floats().subspan(array * stride_ + bucket.begin + run.begin, run.words));
}

// The parts of the current action's gradients that belong to this run.
template <typename T>
std::span<const update::WeightedGradientOf<T>> ShardStore::part_of(const Run& run) {
  auto& part = std::get<std::vector<update::WeightedGradientOf<T>>>(parts_);
  part.clear();
  for (const PushedGradient& gradient : gradients_)
    part.push_back({values_in<T>(gradient.words.subspan(run.begin, run.words)), static_cast<T>(gradient.weight)});
  return part;
}

double ShardStore::norm2(const SumPlan& plan, const GoesOn& goes_on) {
  double sum = 0.0;
  for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
    const OwnBucket& bucket = buckets_[id];
    if (bucket.words == 0) continue;
    if (goes_on) goes_on();
    weigh(plan, BucketId(id));
    with_type(bucket.dtype, [&]<typename T>(T) { add_norm2<T>(bucket, sum); });
  }
  return sum;
}

template <typename T>
void ShardStore::add_norm2(const OwnBucket& bucket, double& sum) {
  for (const Run& run : bucket.runs) {
    if (run.kind != VariableKind::kTrainable && !DISTTRAIN_MUTANT(kStateInNorm)) continue;
    sum += update::squared_norm_of_sum<T>(part_of<T>(run), 1.0 / total_weight_, values_of<T>(sums_, 0, bucket, run));
  }
}

// The gradients of a run: those of the action's pushes, or their sum that norm2() has kept.
template <typename T>
std::span<const update::WeightedGradientOf<T>> ShardStore::gradients_of(const OwnBucket& bucket, const Run& run,
                                                                        bool is_measured) {
  if (!is_measured) return part_of<T>(run);
  auto& part = std::get<std::vector<update::WeightedGradientOf<T>>>(parts_);
  part.assign(1, {values_of<T>(sums_, 0, bucket, run), T{1}});
  return part;
}

template <typename T>
update::SlotSpansOf<T> ShardStore::slots_of_run(const OwnBucket& bucket, const Run& run) {
  update::SlotSpansOf<T> slots;
  for (std::size_t slot = 0; slot < rule_.slots(); ++slot) slots[slot] = values_of<T>(slots_, slot, bucket, run);
  return slots;
}

// Goes through the buckets in ascending order, which is the order of each variable's elements. So the norms don't
// depend on the layout.
std::optional<BucketId> ShardStore::prepare(const SumPlan& plan, const GoesOn& goes_on) {
  std::optional<BucketId> bad;
  has_read_lent_ = false;
  std::fill(norms_.begin(), norms_.end(), update::LayerNorms());
  for (std::uint32_t id = 0; id < buckets_.size(); ++id) {
    OwnBucket& bucket = buckets_[id];
    if (bucket.words == 0) continue;
    if (goes_on) goes_on();
    if (bucket.is_owed) copy_owed(bucket);
    weigh(plan, BucketId(id));
    for (const SumTerm& term : plan.terms)
      has_read_lent_ = has_read_lent_ || !lent(term.landing, BucketId(id)).payload.empty();
    bucket.is_small = with_type(bucket.dtype, [&]<typename T>(T) { return prepare_runs<T>(bucket, plan); });
    if (!bucket.is_small && !is_finite(bucket)) bad = BucketId(id);
  }
  return bad;
}

template <typename T>
bool ShardStore::prepare_runs(const OwnBucket& bucket, const SumPlan& plan) {
  bool is_small = true;
  for (const Run& run : bucket.runs) {
    if (run.kind == VariableKind::kState) continue;
    const update::UpdateStep step{plan.at.learning_rate, plan.at.count, plan.scale / total_weight_, run.is_decayed};
    is_small = rule_.prepare_sum<T>(step, values_of<T>(parameters_, 0, bucket, run),
                                    gradients_of<T>(bucket, run, plan.is_measured), slots_of_run<T>(bucket, run),
                                    norms_[run.variable]) &&
               is_small;
  }
  return is_small;
}

bool ShardStore::update(BucketId id, const UpdateAt& at, double scale, bool is_measured) {
  OwnBucket& bucket = buckets_[id.value];
  if (bucket.is_owed) copy_owed(bucket);
  // prepare() has changed the slots, and has set is_small by them.
  const bool are_slots_small = !rule_.is_by_variable() || bucket.is_small;
  bucket.is_small =
      with_type(bucket.dtype, [&]<typename T>(T) { return update_runs<T>(bucket, at, scale, is_measured); }) &&
      are_slots_small;
  return bucket.is_small;
}

template <typename T>
bool ShardStore::update_runs(const OwnBucket& bucket, const UpdateAt& at, double scale, bool is_measured) {
  bool is_small = true;
  for (const Run& run : bucket.runs) {
    const update::UpdateStep step{at.learning_rate, at.count, scale / total_weight_, run.is_decayed};
    const std::span<T> values = values_of<T>(parameters_, 0, bucket, run);
    bool is_run_small = true;
    if (run.kind == VariableKind::kState)
      is_run_small = mix_state<T>(part_of<T>(run),
                                  static_cast<T>(at.state_weight * (DISTTRAIN_MUTANT(kStateScaled) ? scale : 1.0)),
                                  values, values);
    else if (rule_.is_by_variable())
      is_run_small = rule_.finish<T>(step, norms_[run.variable].trust(), values, slots_of_run<T>(bucket, run));
    else
      is_run_small =
          rule_.apply_sum<T>(step, values, gradients_of<T>(bucket, run, is_measured), slots_of_run<T>(bucket, run));
    clip_to<T>(run.bounds, values);
    is_small = is_run_small && is_small;
    if (DISTTRAIN_MUTANT(kDoublesRounded))
      for (T& value : values) value = static_cast<T>(static_cast<float>(value));
    follow<T>(bucket, run);
  }
  return is_small;
}

// Lets the averages follow the parameters of a run, after their update.
template <typename T>
void ShardStore::follow(const OwnBucket& bucket, const Run& run) {
  if (!has_average()) return;
  const std::span<T> average = values_of<T>(slots_, rule_.slots(), bucket, run);
  const std::span<const T> values = values_of<T>(parameters_, 0, bucket, run);
  if (run.kind == VariableKind::kState)
    std::ranges::copy(values, average.begin());
  else
    update::move_average<T>(average, values, average_);
}

// Workers push state (batch norm's statistics) as values, not as gradients: values += weight * (mean - values). The
// mean is over `pushed`; with train.state = "lowest_rank" it is the first of them, because they are in the order of the
// ranks. With weight 1 the result is exactly the mean. `out` may be `values`.
template <typename T>
bool ShardStore::mix_state(std::span<const update::WeightedGradientOf<T>> pushed, T weight, std::span<const T> values,
                           std::span<T> out) {
  if (weight == T{0}) return true;
  if (state_rule_ == StateRule::kLowestRank && !DISTTRAIN_MUTANT(kLowestRankIgnored)) pushed = pushed.first(1);
  // In double, because the mean of equal whole numbers up to 2^24 must be that number.
  double total = 0;
  for (const auto& part : pushed) total += static_cast<double>(part.weight);
  bool is_small = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double sum = 0;
    for (const auto& part : pushed) sum += static_cast<double>(part.weight) * static_cast<double>(part.values[i]);
    const T mean = pushed.size() == 1 ? pushed[0].values[i] : static_cast<T>(sum / total);
    out[i] = weight == T{1} ? mean : values[i] + weight * (mean - values[i]);
    is_small = is_small && std::abs(out[i]) < update::kLarge<T>;
  }
  return is_small;
}

std::uint64_t ShardStore::bytes() const {
  return arena_.bytes() + (copy_ ? parameters_.size() + slots_.size() : 0);
}

// foresight.cc uses these.
#define DISTTRAIN_INSTANTIATE(T)                                                                                \
  template std::span<T> ShardStore::values_of<T>(Memory&, std::uint64_t, const OwnBucket&, const Run&);         \
  template std::span<const update::WeightedGradientOf<T>> ShardStore::part_of<T>(const Run&);                   \
  template update::SlotSpansOf<T> ShardStore::slots_of_run<T>(const OwnBucket&, const Run&);                    \
  template bool ShardStore::mix_state<T>(std::span<const update::WeightedGradientOf<T>>, T, std::span<const T>, \
                                         std::span<T>);
DISTTRAIN_INSTANTIATE(float)
DISTTRAIN_INSTANTIATE(double)
#undef DISTTRAIN_INSTANTIATE

}  // namespace disttrain::shards
