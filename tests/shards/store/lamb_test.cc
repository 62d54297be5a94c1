// The store with lamb, whose update of a variable needs all its elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

// The variables of small_layout(), each whole on one of three shards.
Layout whole_layout() {
  Layout layout = small_layout(1);
  layout.shards = 3;
  layout.buckets = {Bucket{ShardId(0), 0, 0, 3}, Bucket{ShardId(1), 3, 0, 4}, Bucket{ShardId(1), 7, 4, 8},
                    Bucket{ShardId(2), 15, 0, 7}};
  return layout;
}

// The parameters, followed by the slots, after three steps with lamb, in flat order.
std::vector<std::vector<float>> trained_by_lamb(const Layout& layout, const TrainSection& train) {
  std::vector<std::vector<float>> all(3, std::vector<float>(22));
  for (std::uint32_t s = 0; s < layout.shards; ++s) {
    ShardStore store(layout, ShardId(s), StoreOptions{train, 1, 2, true, false}, {});
    for (std::uint64_t step = 0; step < 3; ++step) {
      auto plan = std::make_shared<SumPlan>();
      plan->at = UpdateAt{.count = step, .learning_rate = 0.25};
      plan->scale = 0.5;
      for (std::uint32_t place : {0U, 1U}) {
        const Landing landing{Landing::Kind::kStaging, Place(place), 0};
        plan->terms.push_back(SumTerm{landing, 10 + place});
        for (const BucketId id : buckets_of(layout, ShardId(s))) {
          const std::span<float> values = store.landing(landing, id);
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = std::sin(static_cast<float>(layout.buckets[id.value].flat_begin + i + 31 * place + 7 * step));
        }
      }
      if (train.clip.kind == ClipKind::kGlobalNorm) {
        store.norm2(*plan);
        plan->is_measured = true;
      }
      store.prepare(*plan);
      std::vector<BucketId> buckets = buckets_of(layout, ShardId(s));
      std::reverse(buckets.begin(), buckets.end());
      for (const BucketId id : buckets) store.sum_and_apply(SumAndApply{id, plan});
    }
    for (const BucketId id : buckets_of(layout, ShardId(s))) {
      const Bucket& bucket = layout.buckets[id.value];
      for (std::size_t i = 0; i < bucket.words; ++i) {
        all[0][bucket.flat_begin + i] = store.parameters(id)[i];
        for (std::size_t slot : {0U, 1U})
          all[1 + slot][bucket.flat_begin + i] = store.slot(slot)[bucket.shard_begin + i];
      }
    }
  }
  return all;
}

TEST(StoreLamb, GivesTheSameBitsForEveryLayout) {
  for (const ClipKind clip : {ClipKind::kNone, ClipKind::kGlobalNorm}) {
    TrainSection train;
    train.mode = Mode::kSync;
    train.optimizer.rule = Rule::kLamb;
    train.optimizer.weight_decay = 0.1;
    train.clip = ClipConfig{clip, 1.0};
    const auto mixed = trained_by_lamb(small_layout(1), train);
    EXPECT_EQ(trained_by_lamb(whole_layout(), train), mixed);
    EXPECT_NE(mixed[1], std::vector<float>(22, 0.0F));
  }
}

TEST(StoreLamb, UpdatesEachVariableAsTheRuleUpdatesItWhole) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.optimizer.rule = Rule::kLamb;
  const Layout layout = small_layout(1);
  std::vector<float> expected = ShardCluster(layout, train, 1).model();
  {
    const ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 2, false, false}, {});
    for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
      std::ranges::copy(store.parameters(BucketId(b)), expected.begin() + 4 * b);
  }
  std::vector<std::vector<float>> slots(2, std::vector<float>(22, 0.0F));
  const update::UpdateRule rule(train);
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<std::vector<float>> pushed(2, std::vector<float>(22));
    for (std::size_t place : {0U, 1U})
      for (std::size_t i = 0; i < 22; ++i) pushed[place][i] = std::sin(static_cast<float>(i + 31 * place + 7 * step));
    for (const auto& [begin, size] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 12}, {15, 7}}) {
      const std::vector<update::WeightedGradient> gradients{{std::span(pushed[0]).subspan(begin, size), 10.0F},
                                                            {std::span(pushed[1]).subspan(begin, size), 11.0F}};
      rule.apply_sum({.learning_rate = 0.25, .t = step, .gradient_scale = 0.5 / 21.0},
                     std::span(expected).subspan(begin, size), gradients,
                     {std::span(slots[0]).subspan(begin, size), std::span(slots[1]).subspan(begin, size)});
    }
  }
  const auto trained = trained_by_lamb(layout, train);
  EXPECT_EQ(trained[0], expected);
  EXPECT_EQ(trained[1], slots[0]);
}

// prepare() changes slots before update() changes the parameters. A copy that was begun before has neither change.
TEST(StoreLamb, ACopyHasNoPreparedSlots) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.optimizer.rule = Rule::kLamb;
  const Layout layout = small_layout(1);
  ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 1, true, false}, {});
  auto plan = std::make_shared<SumPlan>();
  plan->terms.push_back(SumTerm{Landing{Landing::Kind::kStaging, Place(0), 0}, 10});
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
    std::ranges::fill(store.landing(plan->terms[0].landing, BucketId(b)), 1.0F);
  ASSERT_TRUE(store.begin_copy());
  store.prepare(*plan);
  std::shared_ptr<const ShardCopy> copy;
  while (copy == nullptr) copy = store.copy_bucket();
  EXPECT_THAT(copy->array(1), testing::Each(0.0F));
  EXPECT_THAT(store.slot(0), testing::Each(testing::Ne(0.0F)));
}

// The second moments are 1e31, and the parameters stay small.
TEST(StoreWithLamb, LargeSlotsAreRememberedAndLentGradientsTold) {
  const Layout layout = small_layout(1);
  StoreOptions options;
  options.train.mode = Mode::kSync;
  options.train.optimizer.rule = Rule::kLamb;
  options.places = 1;
  ShardStore store(layout, ShardId(0), options, {});
  const Landing staged{Landing::Kind::kStaging, Place(0), 0};
  const BucketId first(0);
  const std::vector<float> lent(store.parameters(first).size(), 1e17F);
  for (std::uint32_t b = 1; b < layout.buckets.size(); ++b) std::ranges::fill(store.landing(staged, BucketId(b)), 1.0F);
  store.lend(staged, first, ChannelId(1), lent, nullptr);
  auto plan = std::make_shared<SumPlan>();
  plan->terms.push_back(SumTerm{staged, 1});
  plan->at.learning_rate = 0.1;
  EXPECT_FALSE(store.prepare(*plan));
  EXPECT_TRUE(store.has_read_lent());
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
    EXPECT_TRUE(store.sum_and_apply(SumAndApply{BucketId(b), plan}));
  EXPECT_TRUE(store.may_overflow(first, 1.0));
  EXPECT_FALSE(store.may_overflow(BucketId(1), 1.0));
}

}  // namespace
}  // namespace disttrain::shards::test
