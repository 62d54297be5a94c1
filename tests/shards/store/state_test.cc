// Variables that are state, in the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

// Three variables. v7 and v3 are trainable. v12 is state: workers send its value instead of a gradient. In sync, the
// store takes the mean of these values. In async, each of these values moves the store's value: with 4 workers, by a
// quarter of the difference between the two. State has no slots.
class StoreWithState : public testing::Test {
 protected:
  StoreWithState() {
    layout_ = small_layout(1);
    layout_.model.variables[1].kind = VariableKind::kState;
    train_.optimizer.learning_rate = 0.5;
  }
  static void fill(std::span<float> values, float value) { std::fill(values.begin(), values.end(), value); }

  Layout layout_;
  TrainSection train_;
};

TEST_F(StoreWithState, IsAveragedInSync) {
  train_.mode = Mode::kSync;
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId mixed(0);  // elements 0..3: three of v3, one of v12
  const std::vector<float> before(store.parameters(mixed).begin(), store.parameters(mixed).end());
  auto plan = std::make_shared<SumPlan>();
  for (std::uint32_t place : {0U, 1U}) {
    const Landing landing{Landing::Kind::kStaging, Place(place), 0};
    fill(store.landing(landing, mixed), place == 0 ? 1.0F : 4.0F);
    plan->terms.push_back(SumTerm{landing, place == 0 ? 10U : 20U});
  }
  plan->at.learning_rate = 0.5;
  store.sum_and_apply(SumAndApply{mixed, plan});
  const auto after = store.parameters(mixed);
  EXPECT_FLOAT_EQ(after[0], before[0] - 0.5F * 3.0F);
  EXPECT_FLOAT_EQ(after[3], 3.0F);  // (10 * 1 + 20 * 4) / 30
}

TEST_F(StoreWithState, ReadsLentPushesWhereTheyAreUntilTheChannelEnds) {
  train_.mode = Mode::kSync;
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId mixed(0);
  std::vector<float> first(4, 1.0F), second(4, 3.0F);
  const auto keeps = std::make_shared<int>();
  auto plan = std::make_shared<SumPlan>();
  plan->at.learning_rate = 0.5;
  for (std::uint32_t place : {0U, 1U}) {
    const Landing landing{Landing::Kind::kStaging, Place(place), 0};
    store.lend(landing, mixed, ChannelId(place + 1), place == 0 ? first : second, keeps);
    plan->terms.push_back(SumTerm{landing, 10U});
  }
  EXPECT_EQ(keeps.use_count(), 3);
  // Worker 1's channel ends, and its memory changes. Worker 0's memory is read when the step is applied.
  store.take_over(ChannelId(2));
  EXPECT_EQ(keeps.use_count(), 2);
  fill(second, 100.0F);
  fill(first, 5.0F);
  const float before = store.parameters(mixed)[0];
  store.sum_and_apply(SumAndApply{mixed, plan});
  EXPECT_FLOAT_EQ(store.parameters(mixed)[0], before - 0.5F * 4.0F);
  EXPECT_EQ(keeps.use_count(), 1) << "what is read is given back";
}

TEST_F(StoreWithState, APayloadThatArrivesReplacesALentOne) {
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 1, false, false}, {});
  const BucketId mixed(0);
  const Landing landing{Landing::Kind::kFrame, Place(0), 0};
  const std::vector<float> lent(4, 100.0F);
  store.lend(landing, mixed, ChannelId(1), lent, nullptr);
  fill(store.landing(landing, mixed), 2.0F);
  const float before = store.parameters(mixed)[0];
  UpdateAt at;
  at.learning_rate = 0.5;
  store.apply(Apply{landing, mixed, at});
  EXPECT_FLOAT_EQ(store.parameters(mixed)[0], before - 0.5F * 2.0F);
}

TEST_F(StoreWithState, IsMixedInByItsWeightInAsync) {
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId state(1);  // elements 4..7, all of v12
  const std::vector<float> before(store.parameters(state).begin(), store.parameters(state).end());
  const Landing landing{Landing::Kind::kFrame, Place(1), 0};
  fill(store.landing(landing, state), 8.0F);
  UpdateAt at;
  at.state_weight = 0.25;
  store.apply(Apply{landing, state, at});
  EXPECT_FLOAT_EQ(store.parameters(state)[2], before[2] + 0.25F * (8.0F - before[2]));
}

TEST_F(StoreWithState, OfTheLowestRankReplacesTheOthersInSync) {
  train_.mode = Mode::kSync;
  train_.state = StateRule::kLowestRank;
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId mixed(0);  // elements 0..3: three of v3, one of v12
  const std::vector<float> before(store.parameters(mixed).begin(), store.parameters(mixed).end());
  auto plan = std::make_shared<SumPlan>();
  for (std::uint32_t place : {1U, 0U}) {  // the order of the ranks
    const Landing landing{Landing::Kind::kStaging, Place(place), 0};
    fill(store.landing(landing, mixed), place == 0 ? 1.0F : 4.1F);
    plan->terms.push_back(SumTerm{landing, place == 0 ? 10U : 20U});
  }
  plan->at.learning_rate = 0.5;
  plan->scale = 0.25;  // clipping scales gradients only
  store.sum_and_apply(SumAndApply{mixed, plan});
  EXPECT_FLOAT_EQ(store.parameters(mixed)[0], before[0] - 0.5F * 0.25F * (10.0F + 20.0F * 4.1F) / 30.0F);
  EXPECT_EQ(store.parameters(mixed)[3], 4.1F);
}

TEST_F(StoreWithState, OfWeightZeroDoesntChange) {
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId state(1);
  const std::vector<float> before(store.parameters(state).begin(), store.parameters(state).end());
  const Landing landing{Landing::Kind::kFrame, Place(1), 0};
  fill(store.landing(landing, state), 8.0F);
  UpdateAt at;
  at.state_weight = 0.0;
  store.apply(Apply{landing, state, at});
  EXPECT_THAT(store.parameters(state), testing::ElementsAreArray(before));
}

TEST_F(StoreWithState, IsNotInTheNorm) {
  train_.mode = Mode::kSync;
  train_.clip = ClipConfig{ClipKind::kGlobalNorm, 1.0};
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 1, false, false}, {});
  SumPlan plan;
  plan.terms.push_back(SumTerm{Landing{Landing::Kind::kStaging, Place(0), 0}, 10});
  for (std::uint32_t bucket = 0; bucket < layout_.buckets.size(); ++bucket)
    fill(store.landing(plan.terms[0].landing, BucketId(bucket)), 2.0F);
  EXPECT_EQ(store.norm2(plan), 4.0 * (7 + 3));
}

TEST_F(StoreWithState, HasAveragesThatFollowTheParametersAndCopyTheState) {
  train_.optimizer.rule = Rule::kMomentum;
  StoreOptions options{train_, 1, 2, true, false};
  options.average = 0.75;
  ShardStore store(layout_, ShardId(0), options, {});
  ASSERT_EQ(store.slots(), 2U);
  const BucketId mixed(0);  // elements 0..3: three of v3, one of v12
  std::vector<float> expected(store.parameters(mixed).begin(), store.parameters(mixed).end());
  EXPECT_THAT(store.averages(mixed), testing::ElementsAreArray(expected)) << "they begin as the parameters";
  const Landing landing{Landing::Kind::kFrame, Place(1), 0};
  for (int step = 0; step < 3; ++step) {
    fill(store.landing(landing, mixed), 2.0F);
    store.apply(Apply{landing, mixed, UpdateAt{.learning_rate = 0.5, .state_weight = 1.0}});
    for (std::size_t i = 0; i < 3; ++i) expected[i] = 0.75F * expected[i] + 0.25F * store.parameters(mixed)[i];
    expected[3] = 2.0F;
    ASSERT_THAT(store.averages(mixed), testing::ElementsAreArray(expected));
  }
  EXPECT_EQ(store.copy()->arrays(), 3U);
  EXPECT_THAT(store.averages(BucketId(5)), testing::ElementsAreArray(store.parameters(BucketId(5))));
}

TEST_F(StoreWithState, AveragesBeginAgainAsTheParametersThatAreSet) {
  StoreOptions options{train_, 1, 2, false, true};
  options.average = 0.75;
  ShardStore store(layout_, ShardId(0), options, {});
  const Landing landing{Landing::Kind::kFrame, Place(1), 0};
  fill(store.landing(landing, BucketId(2)), 3.0F);
  store.set(SetParameters{landing, BucketId(2)});
  EXPECT_THAT(store.averages(BucketId(2)), testing::Each(3.0F));
  fill(store.parameters(), 5.0F);
  store.begin_averages();
  EXPECT_THAT(store.averages(BucketId(2)), testing::Each(5.0F));
}

}  // namespace
}  // namespace disttrain::shards::test
