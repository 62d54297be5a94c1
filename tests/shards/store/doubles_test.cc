// A shard whose variables are float64 and float32.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "common/doubles.h"
#include "common/initialize.h"
#include "shards/store/shard_store.h"

namespace disttrain::shards {
namespace {

constexpr std::size_t kDoubles = 9;  // of the variables "wide" and "mean"
constexpr std::size_t kFloats = 5;
constexpr std::size_t kWords = 2 * kDoubles + kFloats;  // odd, so slots need padding

// "wide" is float64, "mean" is float64 state, "narrow" is float32. Buckets of `piece` doubles go to the shards in turn.
Layout layout_of(std::uint32_t shards, std::uint64_t piece) {
  Layout layout;
  layout.model.variables = {
      VariableSpec{.name = "narrow", .shape = {kFloats}, .initializer = {InitializerKind::kNormal, 1.0}},
      VariableSpec{
          .name = "mean", .shape = {2}, .kind = VariableKind::kState, .initializer = {}, .dtype = DType::kFloat64},
      VariableSpec{.name = "wide",
                   .shape = {kDoubles - 2},
                   .initializer = {InitializerKind::kNormal, 1.0},
                   .dtype = DType::kFloat64}};
  layout.shards = shards;
  layout.variable_begins = {2 * kDoubles, 2 * kDoubles - 4, 0};
  std::vector<std::uint64_t> ends(shards, 0);
  const auto add = [&](std::uint64_t flat, std::uint64_t words) {
    const auto shard = static_cast<std::uint32_t>(layout.buckets.size() % shards);
    layout.buckets.push_back(Bucket{ShardId(shard), flat, ends[shard], words});
    ends[shard] += words;
  };
  for (std::uint64_t at = 0; at < kDoubles; at += piece) add(2 * at, 2 * std::min(piece, kDoubles - at));
  add(2 * kDoubles, kFloats);
  EXPECT_TRUE(validate(layout));
  return layout;
}

// What worker `place` pushes in a step: for the doubles, numbers that a float can't hold.
double pushed(std::size_t element, std::uint32_t place, std::uint64_t step) {
  return std::sin(static_cast<double>(element + 31 * place + 7 * step));
}

TrainSection train_of(Rule rule, ClipKind clip = ClipKind::kNone) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.optimizer.rule = rule;
  train.optimizer.weight_decay = 0.1;
  train.clip = ClipConfig{clip, 1.0};
  return train;
}

// The words of all parameters, and of each slot, in flat order, after three steps of two workers.
std::vector<std::vector<float>> trained(const Layout& layout, const TrainSection& train, double average = 0.0) {
  std::vector<std::vector<float>> all;
  for (std::uint32_t s = 0; s < layout.shards; ++s) {
    ShardStore store(layout, ShardId(s), StoreOptions{train, 1, 2, true, false, average}, {});
    all.resize(1 + store.slots(), std::vector<float>(kWords));
    for (std::uint64_t step = 0; step < 3; ++step) {
      auto plan = std::make_shared<SumPlan>();
      plan->at = UpdateAt{.count = step, .learning_rate = 0.25};
      for (std::uint32_t place : {0U, 1U}) {
        const Landing landing{Landing::Kind::kStaging, Place(place), 0};
        plan->terms.push_back(SumTerm{landing, 10 + place});
        for (const BucketId id : buckets_of(layout, ShardId(s))) {
          const std::span<float> words = store.landing(landing, id);
          const std::uint64_t flat = layout.buckets[id.value].flat_begin;
          if (dtype_of(layout, id) == DType::kFloat64) {
            const std::span<double> values = as_doubles(words);
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = pushed(flat / 2 + i, place, step);
          } else {
            for (std::size_t i = 0; i < words.size(); ++i)
              words[i] = static_cast<float>(pushed(kDoubles + i, place, step));
          }
          EXPECT_TRUE(std::isfinite(store.largest(id, words)));
        }
      }
      if (train.clip.kind == ClipKind::kGlobalNorm) {
        store.norm2(*plan);
        plan->is_measured = true;
      }
      if (train.optimizer.rule == Rule::kLamb) store.prepare(*plan);
      for (const BucketId id : buckets_of(layout, ShardId(s))) store.sum_and_apply(SumAndApply{id, plan});
    }
    const std::shared_ptr<const ShardCopy> copy = store.copy();
    for (const BucketId id : buckets_of(layout, ShardId(s))) {
      const Bucket& bucket = layout.buckets[id.value];
      for (std::size_t i = 0; i < bucket.words; ++i)
        for (std::size_t array = 0; array < all.size(); ++array)
          all[array][bucket.flat_begin + i] = copy->array(array)[bucket.shard_begin + i];
    }
  }
  return all;
}

std::span<const double> doubles_in(const std::vector<float>& words) {
  return as_doubles(std::span(words).first(2 * kDoubles));
}

TEST(StoreOfDoubles, TrainsInFullPrecision) {
  const Layout layout = layout_of(1, kDoubles);
  const TrainSection train = train_of(Rule::kAdam);
  const auto words = trained(layout, train, 0.9);
  const std::span<const double> values = doubles_in(words[0]);

  std::vector<float> first(2 * kDoubles);
  initialize(layout.model.variables[2], 1, 0, std::span(first).first(2 * (kDoubles - 2)));
  const OptimizerConfig& o = train.optimizer;
  for (std::size_t i = 0; i < kDoubles - 2; ++i) {
    double p = as_doubles(std::span<const float>(first))[i];
    EXPECT_NE(p, static_cast<double>(static_cast<float>(p)));
    double average = p;
    double m = 0.0;
    double v = 0.0;
    for (std::uint64_t step = 0; step < 3; ++step) {
      const double g = (10 * pushed(i, 0, step) + 11 * pushed(i, 1, step)) / 21 + o.weight_decay * p;
      m = o.beta1 * m + (1 - o.beta1) * g;
      v = o.beta2 * v + (1 - o.beta2) * g * g;
      const double t = static_cast<double>(step) + 1;
      p -= 0.25 * (m / (1 - std::pow(o.beta1, t))) / (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.epsilon);
      average = 0.9 * average + (1 - 0.9) * p;
    }
    EXPECT_NEAR(values[i], p, 1e-13);
    EXPECT_NEAR(doubles_in(words[1])[i], m, 1e-13);
    EXPECT_NEAR(doubles_in(words[2])[i], v, 1e-13);
    EXPECT_NEAR(doubles_in(words[3])[i], average, 1e-13);
  }
  for (std::size_t i = kDoubles - 2; i < kDoubles; ++i)
    EXPECT_NEAR(values[i], (10 * pushed(i, 0, 2) + 11 * pushed(i, 1, 2)) / 21, 1e-15) << "state";
}

TEST(StoreOfDoubles, GivesTheSameBitsForEveryLayout) {
  for (const TrainSection& train : {train_of(Rule::kAdam), train_of(Rule::kSgd), train_of(Rule::kMomentum)}) {
    const auto one = trained(layout_of(1, kDoubles), train);
    EXPECT_EQ(trained(layout_of(1, 2), train), one);
    EXPECT_EQ(trained(layout_of(2, 2), train), one);
    EXPECT_EQ(trained(layout_of(3, 3), train), one);
  }
  for (const ClipKind clip : {ClipKind::kNone, ClipKind::kGlobalNorm})
    EXPECT_EQ(trained(layout_of(1, 2), train_of(Rule::kLamb, clip)),
              trained(layout_of(1, kDoubles), train_of(Rule::kLamb, clip)));
}

TEST(StoreOfDoubles, ReadsLentDoublesInPlaceOnlyWhereDoublesCanBegin) {
  const Layout layout = layout_of(1, kDoubles);
  ShardStore store(layout, ShardId(0), StoreOptions{train_of(Rule::kSgd), 1, 1, false, false}, {});
  alignas(double) std::array<float, 2 * kDoubles + 1> words{};
  const Landing landing{Landing::Kind::kStaging, Place(0), 0};
  const auto lend = [&](BucketId bucket, std::size_t begin, std::size_t count) {
    const std::span<const float> payload = std::span(words).subspan(begin, count);
    return store.lend(landing, bucket, ChannelId(1), payload, nullptr).data() == payload.data();
  };
  EXPECT_TRUE(lend(BucketId(0), 0, 2 * kDoubles));
  EXPECT_FALSE(lend(BucketId(0), 1, 2 * kDoubles));
  EXPECT_TRUE(lend(BucketId(1), 1, kFloats)) << "floats may begin at any word";
}

TEST(StoreOfDoubles, NanAndInfinityAreFoundInTheBucketsOwnType) {
  const Layout layout = layout_of(1, kDoubles);
  const ShardStore store(layout, ShardId(0), StoreOptions{train_of(Rule::kSgd), 1, 1, false, false}, {});
  std::vector<float> words(2 * kDoubles);
  const std::span<double> values = as_doubles(std::span(words));
  // The upper word of this number is an infinity if it is read as a float.
  values[3] = std::bit_cast<double>(std::uint64_t{0x7f80'0000'0000'0000});
  EXPECT_TRUE(std::isfinite(store.largest(BucketId(0), words)));
  values[3] = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(std::isfinite(store.largest(BucketId(0), words)));
  std::vector<float> floats(kFloats);
  EXPECT_TRUE(std::isfinite(store.largest(BucketId(1), floats)));
  floats[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(store.largest(BucketId(1), floats)));
}

}  // namespace
}  // namespace disttrain::shards
