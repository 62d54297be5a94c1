#include "chiefd/traces/trace_rows.h"

#include <gtest/gtest.h>

#include "tests/chiefd/traces/trace_books.h"

namespace disttrain::chiefd {
namespace {

using namespace test;

TEST(TraceRows, TimesAreOfTheChiefsClock) {
  const TraceBook book = one_frame();
  const TraceRows rows = place(book);
  ASSERT_EQ(rows.processes.size(), 2u);
  EXPECT_EQ(rows.processes[0].name, "ps/0");
  EXPECT_EQ(rows.processes[1].name, "worker/0");
  EXPECT_EQ(rows.processes[0].events[0].begin, at(20).time_since_epoch().count());
  EXPECT_EQ(rows.processes[1].events[0].begin, at(10).time_since_epoch().count());
}

TEST(TraceRows, AFrameFlowsFromItsPushToItsUpdateToItsAnswer) {
  const TraceBook book = one_frame();
  const TraceRows rows = place(book);
  ASSERT_EQ(rows.flows.size(), 1u);
  EXPECT_EQ(rows.pushes, 1u);
  const auto kind = [&](const TraceFlow::Point& point) {
    return rows.processes[point.process].events[point.event].event->kind;
  };
  EXPECT_EQ(kind(rows.flows[0].push), TraceKind::kSend);
  EXPECT_EQ(kind(rows.flows[0].update), TraceKind::kApply);
  EXPECT_EQ(kind(rows.flows[0].answer), TraceKind::kAnswer);
}

TEST(TraceRows, AFrameWithoutItsUpdateHasNoFlow) {
  TraceBook book = one_frame();
  std::erase_if(book.tasks[0].events, [](const TraceEvent& event) { return event.kind == TraceKind::kApply; });
  EXPECT_TRUE(place(book).flows.empty());
}

TEST(TraceRows, AnAnswerOfAnEarlierFrameIsNotTheAnswer) {
  TraceBook book = one_frame();
  book.tasks[1].events[1].sequence = Sequence(0);
  EXPECT_TRUE(place(book).flows.empty());
  book.tasks[1].events.push_back(of_frame(TraceKind::kAnswer, 50, 60, 3));
  const TraceRows rows = place(book);
  ASSERT_EQ(rows.flows.size(), 1u);
  EXPECT_EQ(rows.flows[0].answer.event, 2u);
}

TEST(TraceRows, AnAnswerWithAnotherBucketIsNotTheAnswer) {
  TraceBook book = one_frame();
  book.tasks[1].events[1].bucket = BucketId(1);
  EXPECT_TRUE(place(book).flows.empty());
}

// In sync the shard acknowledges a frame as soon as it is staged, so the acknowledgement says nothing of its update.
TraceBook sync_book() {
  TraceEvent sum = of_frame(TraceKind::kSum, 50, 60, 0, 0, 2);
  sum.incarnation = Incarnation();
  return book_of({trace_of(Role::kPs, {of_frame(TraceKind::kReceive, 20, 24, 1, 0, 2),
                                       of_frame(TraceKind::kHandle, 25, 30, 1, 0, 2), sum}),
                  trace_of(Role::kWorker,
                           {of_frame(TraceKind::kSend, 10, 15, 1, 0, 2), of_frame(TraceKind::kAnswer, 32, 34, 1, 0, 1),
                            of_frame(TraceKind::kAnswer, 70, 75, 1, 0, 2)})},
                 Mode::kSync);
}

TEST(TraceRows, InSyncTheUpdateIsTheSumOfTheStepAndTheAnswerHasItsVersion) {
  const TraceBook book = sync_book();
  const TraceRows rows = place(book);
  ASSERT_EQ(rows.flows.size(), 1u);
  EXPECT_EQ(rows.flows[0].update.event, 2u);
  EXPECT_EQ(rows.flows[0].answer.event, 2u);
}

TEST(TraceRows, AStagedFrameWaitsForTheSum) {
  const TraceBook book = sync_book();
  const TraceRows rows = place(book);
  const PlacedEvent& staged = rows.processes[0].events.back();
  EXPECT_TRUE(staged.is_staged);
  EXPECT_EQ(staged.begin, at(24).time_since_epoch().count());
  EXPECT_EQ(staged.end, at(50).time_since_epoch().count());
  EXPECT_EQ(rows.processes[0].rows[staged.row], "staged of worker/0, shard 0");
}

TEST(TraceRows, AStagedPushOfSeveralFramesIsOneSpanFromTheLastOne) {
  TraceBook book = sync_book();
  book.tasks[0].events.push_back(of_frame(TraceKind::kReceive, 40, 44, 2, 1, 2));
  book.tasks[0].events.push_back(of_frame(TraceKind::kSum, 61, 63, 0, 1, 2));
  const TraceRows rows = place(book);
  ASSERT_EQ(rows.processes[0].events.size(), 6u);
  EXPECT_EQ(rows.processes[0].events[5].begin, at(44).time_since_epoch().count());
  EXPECT_EQ(rows.processes[0].events[5].end, at(50).time_since_epoch().count());
}

TEST(TraceRows, HasNoMoreRowsOfANameThanItsBound) {
  std::vector<TraceEvent> frames;
  for (std::uint64_t frame = 1; frame <= 1000; ++frame) frames.push_back(of_frame(TraceKind::kSend, 10, 900, frame));
  const TraceBook book = book_of({trace_of(Role::kWorker, frames)});
  EXPECT_EQ(place(book).processes[0].rows.size(), 64u);
}

TEST(TraceRows, ALateFrameIsInNoSum) {
  TraceBook book = sync_book();
  book.tasks[0].events[0] = of_frame(TraceKind::kReceive, 61, 62, 1, 0, 2);
  book.tasks[0].events[1] = of_frame(TraceKind::kHandle, 62, 64, 1, 0, 2);
  const TraceRows rows = place(book);
  EXPECT_TRUE(rows.flows.empty());
  EXPECT_FALSE(rows.processes[0].events.back().is_staged);
}

TEST(TraceRows, OverlappingFramesOfAChannelLieInSeveralRows) {
  const TraceBook book =
      book_of({trace_of(Role::kWorker, {of_frame(TraceKind::kSend, 10, 30, 1), of_frame(TraceKind::kSend, 20, 40, 2),
                                        of_frame(TraceKind::kSend, 30, 50, 3)})});
  const TraceProcess process = place(book).processes[0];
  EXPECT_EQ(process.rows, (std::vector<std::string>{"push to shard 0", "push to shard 0"}));
  EXPECT_NE(process.events[0].row, process.events[1].row);
  EXPECT_EQ(process.events[0].row, process.events[2].row) << "the row is free again at 30";
}

}  // namespace
}  // namespace disttrain::chiefd
