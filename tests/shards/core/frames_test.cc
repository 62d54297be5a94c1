// Frames that come twice, too late or with a gap, and workers that are fenced or strangers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/shards/core/async_training.h"

namespace disttrain::shards::test {
namespace {

using testing::HasSubstr;

TEST(Frames, ADuplicateChangesNothingAndIsAnswered) {
  AsyncTraining run(1, async_train(0), 1, 1);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
  run.cluster.deliver_all(run.random);
  const std::vector<float> after = run.cluster.model();
  Push again;
  again.clock = Step(1);
  again.bucket = BucketId(5);
  again.last = true;
  again.want = Want::kAll;
  again.examples = 10;
  run.cluster.send(0, again, {1.0F, 1.0F}, 6);
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), after);
  EXPECT_EQ(run.models[0].outcomes.back(), PushOutcome::kDuplicate);
  EXPECT_EQ(run.report().global_step, Step(1));
}

TEST(Frames, AGapClosesTheChannelAndChangesNothing) {
  AsyncTraining run(1, async_train(0), 1, 1);
  const std::vector<float> before = run.cluster.model();
  Push push;
  push.clock = Step(1);
  run.cluster.send(0, push, {1.0F, 1.0F, 1.0F, 1.0F}, 2);
  run.cluster.deliver_all(run.random);
  ASSERT_EQ(run.cluster.closed.size(), 1U);
  EXPECT_THAT(run.cluster.closed[0], HasSubstr("a gap"));
  EXPECT_EQ(run.cluster.model(), before);
}

TEST(Frames, AReopenedChannelGoesOnAfterTheLastFrame) {
  AsyncTraining run(1, async_train(0), 1, 1);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
  run.cluster.deliver_all(run.random);
  run.cluster.close(0);
  run.cluster.open(0);
  push_all(run.cluster, run.models[0], 2, random_gradient(1, 0, 2, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_THAT(run.cluster.closed, testing::IsEmpty());
  EXPECT_EQ(run.report().global_step, Step(2));
}

TEST(Frames, AFencedWorkerChangesNothingMore) {
  AsyncTraining run(2, async_train(0), 2, 1);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
  run.cluster.deliver_all(run.random);
  const std::vector<float> before = run.cluster.model();
  push_all(run.cluster, run.models[0], 2, random_gradient(1, 0, 2, 22), {});
  for (std::uint32_t s = 0; s < 2; ++s) run.cluster.node(s).handle(Fence{worker(0)});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), before);
  ASSERT_EQ(run.cluster.fences.size(), 2U);
  EXPECT_EQ(run.cluster.fences[0].last_sequence, Sequence(3));
  EXPECT_EQ(run.cluster.fences[0].last_clock, Step(1));
  run.cluster.open(0);
  EXPECT_EQ(run.cluster.refused.size(), 2U);
}

TEST(Frames, AStrangerIsRefused) {
  AsyncTraining run(1, async_train(0), 1, 1);
  run.cluster.open(5);
  ASSERT_EQ(run.cluster.refused.size(), 1U);
  EXPECT_THAT(run.cluster.refused[0].reason, HasSubstr("roster"));
}

}  // namespace
}  // namespace disttrain::shards::test
