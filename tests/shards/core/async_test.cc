#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "common/interval_set.h"
#include "tests/shards/core/async_training.h"

namespace disttrain::shards::test {
namespace {

using testing::ElementsAre;

// The reference implementation applies each frame when it comes: it computes p -= 0.5 * g for one element after the
// other.
TEST(Async, EqualsTheNaiveTwinFrameByFrame) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::uint32_t shards = 1 + seed % 3;
    AsyncTraining run(shards, async_train(0), 1 + seed % 4, seed);
    std::vector<float> twin = run.cluster.model();
    std::uint64_t frames = 0;
    run.cluster.on_push = [&](std::uint32_t, std::uint32_t, const Push& push, const std::vector<float>& gradient) {
      ++frames;
      if (std::any_of(gradient.begin(), gradient.end(), [](float g) { return g != g; })) return;
      const std::uint64_t begin = run.cluster.layout().buckets[push.bucket.value].flat_begin;
      for (std::size_t i = 0; i < gradient.size(); ++i) twin[begin + i] = twin[begin + i] - 0.5F * gradient[i];
    };
    std::uint64_t pushes = 0;
    for (int guard = 0; guard < 4000; ++guard) {
      for (WorkerModel& model : run.models)
        if (model.ready() && model.clock < 15) {
          ++pushes;
          push_all(run.cluster, model, model.clock + 1, random_gradient(seed, model.index, model.clock + 1, 22),
                   {.want = seed % 2 == 0 ? Want::kBucket : Want::kAll, .nonfinite = model.clock % 7 == 6});
        }
      if (!run.cluster.deliver_one(run.random)) break;
    }
    ASSERT_THAT(run.cluster.closed, testing::IsEmpty());
    EXPECT_EQ(run.cluster.model(), twin);
    EXPECT_EQ(run.report().global_step.value, pushes);
    // I6: the shards have taken as many frames as the workers' last sequence numbers say. Sequence numbers begin with
    // 1.
    std::uint64_t sum = 0;
    for (std::uint32_t w = 0; w < run.models.size(); ++w)
      for (std::uint32_t s = 0; s < shards; ++s) sum += run.cluster.last_sequence(w, s);
    EXPECT_EQ(frames, sum);
  }
}

TEST(Async, StopsAtTheStepAndSaysSo) {
  AsyncTraining run(1, async_train(3), 1, 1);
  for (std::uint64_t clock = 1; clock <= 4; ++clock) {
    push_all(run.cluster, run.models[0], clock, random_gradient(1, 0, clock, 22), {});
    run.cluster.deliver_all(run.random);
  }
  EXPECT_THAT(run.models[0].outcomes,
              ElementsAre(PushOutcome::kApplied, PushOutcome::kApplied, PushOutcome::kApplied, PushOutcome::kApplied))
      << "what was under way at the end is applied";
  EXPECT_TRUE(run.models[0].finished);
  EXPECT_EQ(run.report().global_step, Step(4));
  EXPECT_GE(run.cluster.reports_now, 1);
}

TEST(Async, StalenessOfEachGradientIsCountedByThePacer) {
  AsyncTraining run(1, async_train(0), 2, 1);
  run.cluster.deliver_all(run.random);
  // Meanwhile worker 1 computes with its first parameters.
  for (std::uint64_t clock = 1; clock <= 3; ++clock)
    push_all(run.cluster, run.models[0], clock, random_gradient(1, 0, clock, 22), {});
  run.cluster.deliver_all(run.random);
  push_all(run.cluster, run.models[1], 1, random_gradient(1, 1, 1, 22), {});
  run.cluster.deliver_all(run.random);
  const StepsHistogram& staleness = run.cluster.node(0).shard.core().gradient_staleness();
  EXPECT_EQ(std::accumulate(staleness.counts().begin(), staleness.counts().end(), std::uint64_t{0}), 4u);
  EXPECT_GE(staleness.sum(), 3.0);
}

TEST(Async, APullIsAnsweredWithAllBucketsAndItsNumber) {
  AsyncTraining run(1, async_train(0), 1, 1);
  std::vector<std::uint64_t> ids;
  run.cluster.on_heard = [&ids](std::uint32_t, std::uint32_t, const Heard& heard) {
    ids.push_back(std::get<Parameters>(heard.message).pull_id);
  };
  run.cluster.pull(0, 0, 99);
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(ids, std::vector<std::uint64_t>(6, 99));
}

TEST(Async, ASkippedPushCountsAndItsRecordsAreVisited) {
  AsyncTraining run(1, async_train(0), 1, 1, 100);
  Push push;
  push.clock = Step(1);
  push.last = push.skipped = true;
  push.want = Want::kAll;
  push.examples = 10;
  push.lease = LeaseId(1);
  push.visited = {{0, 10}};
  const std::vector<float> before = run.cluster.model();
  run.cluster.send(0, push, {});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), before);
  EXPECT_THAT(run.models[0].outcomes, ElementsAre(PushOutcome::kSkipped));
  EXPECT_EQ(run.report().skipped, 1U);
  ASSERT_EQ(run.report().ledger.size(), 1U);
  EXPECT_THAT(run.report().ledger[0].visited, ElementsAre(Interval{0, 10}));
}

// The gradient is finite, but its square isn't.
TEST(Async, AnUpdateThatOverflowsIsSkipped) {
  TrainSection train = async_train(0);
  train.optimizer.rule = Rule::kAdam;
  AsyncTraining run(1, train, 1, 1);
  const std::vector<float> before = run.cluster.model();
  std::vector<float> gradient(22, 0.0F);  // only the first bucket has a gradient
  gradient[1] = std::numeric_limits<float>::max();
  push_all(run.cluster, run.models[0], 1, gradient, {});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), before);
  EXPECT_EQ(run.models[0].outcomes.back(), PushOutcome::kSkipped);
  EXPECT_EQ(run.report().skipped, 1U);
  push_all(run.cluster, run.models[0], 2, random_gradient(1, 0, 2, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.models[0].outcomes.back(), PushOutcome::kApplied);
  EXPECT_NE(run.cluster.model(), before);
}

// The shell drops all actions behind an update that fails, also the order to fail the job.
TEST(AsyncShard, AnUpdateThatFailsAfterTheJobHasFailedFailsItAgain) {
  ShardOptions options;
  options.train.mode = Mode::kAsync;
  options.train.nonfinite = {NonfiniteAction::kFail, 0};
  options.roster = roster_of(1);
  ShardCore shard(small_layout(1), options);
  Actions actions;
  for (int i = 0; i < 2; ++i) {
    actions.clear();
    shard.step({}, UpdateFailed{BucketId(0), false}, actions);
    ASSERT_EQ(actions.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<FailJob>(actions[0]));
  }
}

}  // namespace
}  // namespace disttrain::shards::test
