#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/memory_plan.h"
#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

TEST(Store, InitialValuesDontDependOnTheNumberOfShards) {
  const TrainSection train;
  const std::vector<float> one = ShardCluster(small_layout(1), train, 1).model();
  for (std::uint32_t shards : {2U, 3U}) EXPECT_EQ(ShardCluster(small_layout(shards), train, 1).model(), one);
  EXPECT_NE(one.front(), one.back());
}

TEST(Store, TakesNoMoreMemoryThanThePlanSays) {
  const Layout layout = small_layout(2);
  for (Mode mode : {Mode::kAsync, Mode::kSsp, Mode::kSync})
    for (std::uint32_t pipeline : {0U, 1U})
      for (Rule rule : {Rule::kSgd, Rule::kAdam}) {
        TrainSection train;
        train.mode = mode;
        train.pipeline = pipeline;
        train.optimizer.rule = rule;
        const auto slots = static_cast<std::uint32_t>(update::UpdateRule(train).slots());
        for (ShardId shard : {ShardId(0), ShardId(1)}) {
          const ShardStore store(layout, shard, StoreOptions{train, 1, 3, false, false}, {});
          JobConfig job;
          job.train = train;
          const ShardMemory plan = bytes_per_shard(layout, shard, job, slots, 3, 4);
          EXPECT_LE(store.bytes(), plan.parameters + plan.slots + plan.receive);
          EXPECT_GE(store.bytes(), plan.parameters + plan.slots);
        }
      }
}

TEST(Store, CopyIsOfTheMomentWhenItWasBegun) {
  TrainSection train;
  train.optimizer.rule = Rule::kMomentum;
  const Layout layout = small_layout(1);
  ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 1, true, false}, {});
  const Landing landing{Landing::Kind::kFrame, Place(0), 0};
  const auto apply_to = [&](std::uint32_t bucket) {
    const auto values = store.landing(landing, BucketId(bucket));
    std::fill(values.begin(), values.end(), 1.0F);
    UpdateAt at;
    at.learning_rate = 0.5;
    store.apply(Apply{landing, BucketId(bucket), at});
  };
  for (std::uint32_t bucket = 0; bucket < layout.buckets.size(); ++bucket) apply_to(bucket);
  const auto now = [](std::span<float> values) { return std::vector<float>(values.begin(), values.end()); };
  const std::vector<float> parameters = now(store.parameters());
  const std::vector<float> momentum = now(store.slot(0));

  ASSERT_TRUE(store.begin_copy());
  EXPECT_FALSE(store.begin_copy()) << "one at a time";
  apply_to(3);
  apply_to(3);
  EXPECT_EQ(store.copy_bucket(), nullptr);
  apply_to(0);
  std::shared_ptr<const ShardCopy> copy;
  while (copy == nullptr) {
    copy = store.copy_bucket();
    apply_to(5);
  }
  EXPECT_THAT(copy->array(0), testing::ElementsAreArray(parameters));
  EXPECT_THAT(copy->array(1), testing::ElementsAreArray(momentum));
  EXPECT_NE(now(store.parameters()), parameters);
  EXPECT_EQ(store.copy(), nullptr) << "it is still held";
  copy.reset();
  EXPECT_THAT(store.copy()->array(0), testing::ElementsAreArray(now(store.parameters())));
}

TEST(Store, CopyThatUpdatesHaveMadeIsWhole) {
  const Layout layout = small_layout(2);
  ShardStore store(layout, ShardId(0), StoreOptions{TrainSection{}, 1, 1, true, false}, {});
  ASSERT_TRUE(store.begin_copy());
  for (std::uint32_t bucket : {0U, 2U, 4U})
    store.apply(Apply{Landing{Landing::Kind::kFrame, Place(0), 0}, BucketId(bucket), UpdateAt{}});
  EXPECT_NE(store.copy_bucket(), nullptr);
}

// Clipping by the global norm first measures the sum of the gradients. The step then uses the measured sum, so each
// gradient is read only once.
TEST(Store, AMeasuredStepUsesTheSumsThatWereMeasured) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.clip = ClipConfig{ClipKind::kGlobalNorm, 1.0};
  const Layout layout = small_layout(1);
  const auto result = [&](bool is_measured, float later) {
    ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 3, false, false}, {});
    SumPlan plan;
    plan.at.learning_rate = 0.5;
    const auto stage = [&](float first) {
      for (std::uint32_t place = 0; place < 3; ++place)
        for (std::uint32_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
          const auto values = store.landing(Landing{Landing::Kind::kStaging, Place(place), 0}, BucketId(bucket));
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = first * static_cast<float>(1 + i) / static_cast<float>(3 + place);
        }
    };
    for (std::uint32_t place = 0; place < 3; ++place)
      plan.terms.push_back(SumTerm{Landing{Landing::Kind::kStaging, Place(place), 0}, 10 + place});
    stage(1.0F);
    EXPECT_GT(store.norm2(plan), 0.0);
    stage(later);
    plan.scale = 0.25;
    plan.is_measured = is_measured;
    const auto shared = std::make_shared<const SumPlan>(plan);
    for (std::uint32_t bucket = 0; bucket < layout.buckets.size(); ++bucket)
      store.sum_and_apply(SumAndApply{BucketId(bucket), shared});
    return std::vector<float>(store.parameters().begin(), store.parameters().end());
  };
  EXPECT_EQ(result(true, 777.0F), result(false, 1.0F)) << "the same bits";
  EXPECT_NE(result(false, 777.0F), result(false, 1.0F));
}

// Updates each variable of small_layout(), the second of which is made a matrix, with gradients of 0. So weight decay
// alone changes it. Says which variables have changed.
std::vector<bool> changed_by_decay(Rule rule, DecayOf decay_of) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.optimizer.rule = rule;
  train.optimizer.weight_decay = 0.5;
  train.optimizer.weight_decay_of = decay_of;
  Layout layout = small_layout(1);
  layout.model.variables[1].shape = {3, 4};
  ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 1, false, false}, {});
  std::ranges::fill(store.parameters(), 1.0F);
  auto plan = std::make_shared<SumPlan>();
  plan->at = UpdateAt{.count = 0, .learning_rate = 0.25};
  plan->scale = 1.0;
  plan->terms.push_back(SumTerm{Landing{Landing::Kind::kStaging, Place(0), 0}, 10});
  if (update::UpdateRule(train).is_by_variable()) store.prepare(*plan);
  std::vector<float> flat;
  for (const BucketId id : buckets_of(layout, ShardId(0))) {
    store.sum_and_apply(SumAndApply{id, plan});
    flat.insert(flat.end(), store.parameters(id).begin(), store.parameters(id).end());
  }
  std::vector<bool> changed;
  for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
    const auto values = std::span(flat).subspan(layout.variable_begins[v], element_count(layout.model.variables[v]));
    const auto is_changed = [](float value) { return value < 1.0F; };
    changed.push_back(std::ranges::any_of(values, is_changed));
    EXPECT_EQ(std::ranges::all_of(values, is_changed), changed.back()) << "variable " << v;
  }
  return changed;
}

TEST(Store, WeightDecayOfMatricesLeavesVectorsAlone) {
  for (const Rule rule : {Rule::kSgd, Rule::kMomentum, Rule::kAdam, Rule::kAdamw, Rule::kLamb}) {
    EXPECT_EQ(changed_by_decay(rule, DecayOf::kAll), (std::vector<bool>{true, true, true}));
    EXPECT_EQ(changed_by_decay(rule, DecayOf::kMatrices), (std::vector<bool>{false, true, false}));
  }
}

}  // namespace
}  // namespace disttrain::shards::test
