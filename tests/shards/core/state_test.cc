// Variables that are state: which pushes change them, and a NaN in one.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/shards/core/async_training.h"

namespace disttrain::shards::test {
namespace {

// Both workers push 1.5 as every element. In the layout, the state is all of bucket 1.
TEST(Async, WithLowestRankOnlyThePushesOfRank0ChangeTheState) {
  for (const StateRule rule : {StateRule::kMean, StateRule::kLowestRank}) {
    TrainSection train = async_train(0);
    train.state = rule;
    Layout layout = small_layout(2);
    layout.model.variables[1].kind = VariableKind::kState;
    Random random(1);
    ShardCluster cluster(layout, train, 2);
    std::vector<WorkerModel> models(2);
    for (std::uint32_t w : {0U, 1U}) {
      models[w].index = w;
      start(cluster, models[w]);
    }
    const float first = cluster.model()[4];
    push_all(cluster, models[1], 1, std::vector<float>(22, 1.5F), {});
    cluster.deliver_all(random);
    const float mixed = first + 0.5F * (1.5F - first);
    EXPECT_EQ(cluster.model()[4], rule == StateRule::kMean ? mixed : first);
    push_all(cluster, models[0], 1, std::vector<float>(22, 1.5F), {});
    cluster.deliver_all(random);
    EXPECT_EQ(cluster.model()[4], rule == StateRule::kMean ? mixed + 0.5F * (1.5F - mixed) : 1.5F);
  }
}

// State isn't a gradient, but a NaN in it would spoil the model too. So the step is skipped at every shard.
TEST(Sync, ANanInStateSkipsTheStep) {
  for (const StateRule rule : {StateRule::kMean, StateRule::kLowestRank}) {
    TrainSection train = async_train(0);
    train.mode = Mode::kSync;
    train.state = rule;
    Layout layout = small_layout(2);
    layout.model.variables[2].kind = VariableKind::kState;  // the first three elements
    Random random(1);
    ShardCluster cluster(layout, train, 1);
    WorkerModel model;
    start(cluster, model);
    cluster.on_heard = [&](std::uint32_t shard, std::uint32_t, const Heard& heard) {
      hear(cluster, model, shard, heard);
    };
    const std::vector<float> before = cluster.model();
    PushOptions options;
    options.nonfinite = true;  // in element 0
    push_all(cluster, model, 1, std::vector<float>(22, 1.5F), options);
    cluster.deliver_all(random);
    EXPECT_EQ(cluster.model(), before);
    EXPECT_EQ(cluster.node(0).shard.core().report().skipped, 1U);
  }
}

}  // namespace
}  // namespace disttrain::shards::test
