// Pauses of the job, and the marks of checkpoints.
#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

// If the worker has sent some frames of a push, it must send the others: the checkpoint waits for the mark, and the
// mark must not come in the middle of a push.
TEST_F(WorkerCoreTest, PushThatHasBegunIsEndedInAPauseWhereAMarkWaitsForIt) {
  facts_.config.train.mode = Mode::kAsync;
  begin_and_pull();
  ASSERT_EQ(take<Compute>().size(), 1U);
  give(RangesReady{4});
  take<SendPush>();
  give(Paused{true});
  give(MarkRequested{5});
  EXPECT_TRUE(take<SendMark>().empty());
  give(Computed{1.0F});
  EXPECT_EQ(take<SendPush>().size(), 2U);
  EXPECT_EQ(take<SendMark>().size(), 2U);
  EXPECT_TRUE(take<Compute>().empty());
}

// The chief repeats the order when the worker reconnects. The worker must not send a second mark for the same attempt:
// behind the first mark, the worker holds pushes back until the cut, and a second mark would release them too early.
TEST_F(WorkerCoreTest, MarkThatIsAskedForAgainIsSentOnce) {
  facts_.config.train.mode = Mode::kAsync;
  begin_and_pull();
  give(MarkRequested{5});
  give(Computed{1.0F});
  EXPECT_EQ(take<SendMark>().size(), 2U);
  const std::size_t sent = take<SendPush>().size();
  EXPECT_EQ(sent, 3U);
  give(MarkRequested{5});
  EXPECT_TRUE(take<SendMark>().empty());
  EXPECT_TRUE(take<SendPush>().empty());
  give(MarkRequested{4});
  EXPECT_TRUE(take<SendMark>().empty()) << "an earlier attempt";
  give(MarkRequested{6});
  EXPECT_EQ(take<SendMark>().size(), 2U) << "the next attempt";
}

TEST_F(WorkerCoreTest, GradientThatIsComputedInAPauseWaitsForItsEnd) {
  facts_.config.train.mode = Mode::kAsync;
  begin_and_pull();
  ASSERT_EQ(take<Compute>().size(), 1U);
  give(Paused{true});
  give(Computed{1.0F});
  EXPECT_TRUE(take<SendPush>().empty());
  give(Paused{false});
  EXPECT_EQ(take<SendPush>().size(), 3U);
}

}  // namespace
}  // namespace disttrain::workerd
