#include "common/trace/recorder.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

TraceEvent event(std::uint64_t step) {
  return {.step = step, .kind = TraceKind::kSend};
}

TEST(TraceRecorder, IsOnFromTheFirstStepUntilTheLastIsDone) {
  TraceRecorder recorder({5, 6}, 10);
  for (std::uint64_t done = 0; done <= 3; ++done) {
    recorder.reach(Step(done));
    EXPECT_FALSE(recorder.is_on()) << done;
  }
  recorder.reach(Step(4));
  EXPECT_TRUE(recorder.is_on()) << "step 5 begins";
  recorder.add(event(5));
  recorder.reach(Step(5));
  EXPECT_TRUE(recorder.is_on());
  EXPECT_FALSE(recorder.is_due());
  recorder.reach(Step(6));
  EXPECT_FALSE(recorder.is_on());
  EXPECT_TRUE(recorder.is_due());
  const TraceTake take = recorder.take();
  EXPECT_EQ(take.events, std::vector<TraceEvent>{event(5)});
  EXPECT_EQ(take.dropped, 0u);
  EXPECT_FALSE(recorder.is_due());
  EXPECT_TRUE(recorder.is_taken());
  recorder.reach(Step(5));
  EXPECT_FALSE(recorder.is_on()) << "it stays off";
}

TEST(TraceRecorder, RecordsTheFirstStepOfAJob) {
  TraceRecorder recorder({1, 1}, 10);
  recorder.reach(Step(0));
  EXPECT_TRUE(recorder.is_on());
}

TEST(TraceRecorder, ThreadThatBeginsBehindTheStepsRecordsNothing) {
  TraceRecorder recorder({5, 6}, 10);
  recorder.reach(Step(100));
  EXPECT_FALSE(recorder.is_on());
  EXPECT_TRUE(recorder.is_due());
  EXPECT_TRUE(recorder.take().events.empty());
}

TEST(TraceRecorder, KeepsTheFirstEventsAndCountsTheRest) {
  TraceRecorder recorder({1, 9}, 3);
  recorder.reach(Step(0));
  for (std::uint64_t step = 1; step <= 5; ++step) recorder.add(event(step));
  const TraceTake take = recorder.take();
  EXPECT_EQ(take.events, (std::vector<TraceEvent>{event(1), event(2), event(3)}));
  EXPECT_EQ(take.dropped, 2u);
}

TEST(TracePieces, HoldAllEventsInOrderAndTheLastOneSaysSo) {
  TraceTake take;
  for (std::uint64_t step = 0; step < 2 * kMaxTracePiece + 1; ++step) take.events.push_back(event(step));
  take.dropped = 7;
  const std::vector<TraceEvents> pieces = pieces_of(JobId(3), Generation(4), take);
  ASSERT_EQ(pieces.size(), 3u);
  std::vector<TraceEvent> all;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(pieces[i].job, JobId(3));
    EXPECT_EQ(pieces[i].generation, Generation(4));
    EXPECT_EQ(pieces[i].piece, i);
    EXPECT_EQ(pieces[i].last, i == 2);
    EXPECT_EQ(pieces[i].dropped, 7u);
    all.insert(all.end(), pieces[i].events.begin(), pieces[i].events.end());
  }
  EXPECT_EQ(all, take.events);
}

TEST(TracePieces, AnEmptyTraceIsOneEmptyPiece) {
  const std::vector<TraceEvents> pieces = pieces_of(JobId(3), Generation(4), {});
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_TRUE(pieces[0].events.empty());
  EXPECT_TRUE(pieces[0].last);
}

}  // namespace
}  // namespace disttrain
