// Variables with bounds, in the store.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

// v3 has bounds, and v12 has none, though they share a bucket.
TEST(StoreWithBounds, EachUpdateKeepsThem) {
  Layout layout = small_layout(1);
  layout.model.variables[2].bounds = {-0.25, 0.5};
  const BucketId mixed(0);  // elements 0..3: three of v3, one of v12
  for (const Rule rule : {Rule::kSgd, Rule::kLamb}) {
    StoreOptions options;
    options.train.mode = Mode::kSync;
    options.train.optimizer.rule = rule;
    options.places = 1;
    options.average = 0.5;
    ShardStore store(layout, ShardId(0), options, {});
    std::ranges::fill(store.parameters(), 0.0F);
    store.begin_averages();
    const Landing staged{Landing::Kind::kStaging, Place(0), 0};
    const std::vector<float> gradient = {-100.0F, 100.0F, 0.0F, 100.0F};
    auto plan = std::make_shared<SumPlan>();
    plan->terms.push_back(SumTerm{staged, 1});
    plan->at.learning_rate = 10.0;
    if (rule == Rule::kLamb)
      for (std::uint32_t b = 1; b < layout.buckets.size(); ++b)
        std::ranges::fill(store.landing(staged, BucketId(b)), 1.0F);
    std::ranges::copy(gradient, store.landing(staged, mixed).begin());
    if (rule == Rule::kLamb) store.prepare(*plan);
    store.sum_and_apply(SumAndApply{mixed, plan});
    const auto after = store.parameters(mixed);
    EXPECT_EQ(after[0], 0.5F);
    EXPECT_EQ(after[1], -0.25F);
    EXPECT_EQ(after[2], 0.0F);
    EXPECT_LT(after[3], -1.0F);
    EXPECT_EQ(store.averages(mixed)[0], 0.25F) << "the average follows the value within the bounds";
  }
}

TEST(StoreWithBounds, ANanStaysANan) {
  Layout layout = small_layout(1);
  layout.model.variables[2].bounds = {-0.25, 0.5};
  ShardStore store(layout, ShardId(0), StoreOptions{TrainSection(), 1, 1, false, false}, {});
  store.parameters()[0] = std::nanf("");
  store.parameters()[1] = 7.0F;
  store.keep_bounds();
  EXPECT_TRUE(std::isnan(store.parameters()[0]));
  EXPECT_EQ(store.parameters()[1], 0.5F);
}

}  // namespace
}  // namespace disttrain::shards::test
