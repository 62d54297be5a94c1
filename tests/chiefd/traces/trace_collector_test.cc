#include "chiefd/traces/trace_collector.h"

#include <gtest/gtest.h>

#include "common/trace/recorder.h"
#include "tests/chiefd/traces/trace_books.h"

namespace disttrain::chiefd {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr TaskId kPs0{Role::kPs, 0};
constexpr TaskId kWorker0{Role::kWorker, 0};
constexpr TaskId kWorker1{Role::kWorker, 1};

class TraceCollectorTest : public testing::Test {
 protected:
  using RunningJob = TraceCollector::RunningJob;

  TraceCollectorTest() {
    job_.job = JobId(7);
    job_.generation = Generation(1);
    job_.name = "digits";
    job_.steps = {5, 9};
    job_.folder = "/c/digits/events";
    job_.members = job_.living = {kPs0, kWorker0, kWorker1};
    job_.reached = Step(9);
    collector_.watch(job_);
  }

  void send(TaskId from, std::size_t events = 1, Generation generation = Generation(1)) {
    for (TraceEvents& piece : pieces_of(JobId(7), generation, {std::vector<TraceEvent>(events), 0}))
      collector_.hear(now_, from, std::move(piece));
  }

  Instant now_ = at(0);
  TraceCollector::RunningJob job_;
  TraceCollector collector_;
};

TEST_F(TraceCollectorTest, IsCompleteWhenAllTasksHaveSentAllPieces) {
  EXPECT_FALSE(collector_.is_collecting(JobId(7)));
  send(kPs0, 3);
  EXPECT_TRUE(collector_.is_collecting(JobId(7)));
  send(kWorker0, kMaxTracePiece + 2);
  EXPECT_FALSE(collector_.take(now_));
  send(kWorker1);
  const std::optional<TraceBook> book = collector_.take(now_);
  ASSERT_TRUE(book);
  EXPECT_EQ(book->job, JobId(7));
  EXPECT_EQ(book->folder, "/c/digits/events");
  EXPECT_TRUE(book->missing.empty());
  ASSERT_EQ(book->tasks.size(), 3u);
  EXPECT_EQ(book->tasks[0].task, kPs0);
  EXPECT_EQ(book->tasks[0].events.size(), 3u);
  EXPECT_EQ(book->tasks[1].events.size(), kMaxTracePiece + 2);
  EXPECT_FALSE(collector_.take(now_ + 1h)) << "a trace is taken once";
  EXPECT_FALSE(collector_.is_collecting(JobId(7)));
}

TEST_F(TraceCollectorTest, TaskThatDiesIsNotWaitedForButMissing) {
  send(kPs0);
  send(kWorker0);
  EXPECT_FALSE(collector_.take(now_));
  job_.living.erase(kWorker1);
  collector_.watch(job_);
  const std::optional<TraceBook> book = collector_.take(now_);
  ASSERT_TRUE(book);
  EXPECT_EQ(book->missing, std::vector<TaskId>{kWorker1});
}

TEST_F(TraceCollectorTest, TaskThatLivesIsWaitedForUntilTheDeadline) {
  send(kPs0);
  send(kWorker0);
  EXPECT_FALSE(collector_.take(now_ + job_.patience - 1ms));
  const std::optional<TraceBook> book = collector_.take(now_ + job_.patience);
  ASSERT_TRUE(book);
  EXPECT_EQ(book->missing, std::vector<TaskId>{kWorker1});
  send(kWorker1);
  EXPECT_FALSE(collector_.is_collecting(JobId(7))) << "too late: this would be a trace of one task";
}

TEST_F(TraceCollectorTest, TaskThatHasRecordedNothingIsNotMissing) {
  send(kWorker1, 0);
  EXPECT_FALSE(collector_.is_collecting(JobId(7))) << "a trace needs an event";
  send(kPs0);
  send(kWorker0);
  const std::optional<TraceBook> book = collector_.take(now_);
  ASSERT_TRUE(book);
  EXPECT_TRUE(book->missing.empty());
}

TEST_F(TraceCollectorTest, BookIsEmptyIfNobodyHasRecordedAnything) {
  for (const TaskId task : {kPs0, kWorker0, kWorker1}) send(task, 0);
  EXPECT_FALSE(collector_.take(now_ + 1h)) << "the job goes on";
  collector_.end(now_, JobId(7));
  const std::optional<TraceBook> book = collector_.take(now_);
  ASSERT_TRUE(book);
  EXPECT_FALSE(book->has_events());
  EXPECT_TRUE(book->missing.empty());
  EXPECT_FALSE(collector_.take(now_ + 1h)) << "told once";
}

TEST_F(TraceCollectorTest, JobThatEndsBeforeItsFirstStepHasNoBook) {
  job_.reached = Step();
  collector_.watch(job_);
  collector_.end(now_, JobId(7));
  EXPECT_FALSE(collector_.is_collecting(JobId(7)));
  EXPECT_FALSE(collector_.take(now_ + 1h));
}

TEST_F(TraceCollectorTest, AfterTheJobsEndItWaitsOnlyShortly) {
  send(kPs0);
  collector_.end(now_, JobId(7));
  EXPECT_FALSE(collector_.take(now_));
  EXPECT_TRUE(collector_.take(now_ + TraceCollector::kPatienceAtEnd));
}

// On a busy machine the job's end may overtake all events.
TEST_F(TraceCollectorTest, EventsThatComeShortlyAfterTheJobsEndAreATrace) {
  collector_.end(now_, JobId(7));
  EXPECT_TRUE(collector_.is_collecting(JobId(7)));
  EXPECT_FALSE(collector_.take(now_));
  for (const TaskId task : {kPs0, kWorker0, kWorker1}) send(task);
  const std::optional<TraceBook> book = collector_.take(now_);
  ASSERT_TRUE(book);
  EXPECT_EQ(book->tasks.size(), 3u);
  EXPECT_TRUE(book->missing.empty());
  EXPECT_FALSE(collector_.is_collecting(JobId(7)));
}

TEST_F(TraceCollectorTest, LateTaskCostsOnlyItsPart) {
  collector_.end(now_, JobId(7));
  send(kPs0);
  send(kWorker1, 0);
  EXPECT_FALSE(collector_.take(now_ + TraceCollector::kPatienceAtEnd - 1ms));
  const std::optional<TraceBook> book = collector_.take(now_ + TraceCollector::kPatienceAtEnd);
  ASSERT_TRUE(book);
  EXPECT_TRUE(book->has_events());
  EXPECT_EQ(book->missing, std::vector<TaskId>{kWorker0});
}

TEST_F(TraceCollectorTest, WithoutAnyEventTheBookNamesTheLateTasks) {
  collector_.end(now_, JobId(7));
  send(kPs0, 0);
  const std::optional<TraceBook> book = collector_.take(now_ + TraceCollector::kPatienceAtEnd);
  ASSERT_TRUE(book);
  EXPECT_FALSE(book->has_events());
  EXPECT_EQ(book->missing, (std::vector<TaskId>{kWorker0, kWorker1}));
  send(kWorker0);
  EXPECT_FALSE(collector_.is_collecting(JobId(7))) << "the operator was told that there is no trace";
}

TEST_F(TraceCollectorTest, AfterTheJobsEndItWaitsAsLongAsPiecesCome) {
  send(kPs0);
  send(kWorker1);
  collector_.end(now_, JobId(7));
  const Instant end = now_;
  const std::vector<TraceEvents> pieces =
      pieces_of(JobId(7), Generation(1), {std::vector<TraceEvent>(40 * kMaxTracePiece), 0});
  std::size_t next = 0;
  while (now_ < end + job_.patience) {
    EXPECT_FALSE(collector_.take(now_)) << next;
    collector_.hear(now_, kWorker0, pieces.at(next++));
    now_ += TraceCollector::kPatienceAtEnd - 1ms;
  }
  const std::optional<TraceBook> book = collector_.take(end + job_.patience);
  ASSERT_TRUE(book) << "but not for ever";
  EXPECT_EQ(book->missing, std::vector<TaskId>{kWorker0});
}

TEST_F(TraceCollectorTest, TraceOfAnEarlierGenerationIsTheJobsTrace) {
  for (const TaskId task : {kPs0, kWorker0, kWorker1}) send(task);
  ASSERT_TRUE(collector_.take(now_));
  job_.generation = Generation(2);
  collector_.watch(job_);
  for (const TaskId task : {kPs0, kWorker0, kWorker1}) send(task, 0, Generation(2));
  collector_.end(now_, JobId(7));
  EXPECT_FALSE(collector_.is_collecting(JobId(7)));
  EXPECT_FALSE(collector_.take(now_ + 1h));
}

TEST_F(TraceCollectorTest, NextJobWaitsForTheTraceOfTheJobBefore) {
  collector_.end(now_, JobId(7));
  RunningJob next = job_;
  next.job = JobId(8);
  collector_.watch(next);
  EXPECT_TRUE(collector_.is_collecting(JobId(7)));
  ASSERT_TRUE(collector_.take(now_ + TraceCollector::kPatienceAtEnd));
  collector_.watch(next);
  collector_.end(now_, JobId(8));
  EXPECT_TRUE(collector_.is_collecting(JobId(8)));
}

TEST_F(TraceCollectorTest, LostPieceMakesATaskMissing) {
  std::vector<TraceEvents> pieces =
      pieces_of(JobId(7), Generation(1), {std::vector<TraceEvent>(3 * kMaxTracePiece), 0});
  collector_.hear(now_, kPs0, pieces[0]);
  collector_.hear(now_, kPs0, pieces[2]);
  send(kWorker0);
  send(kWorker1);
  EXPECT_FALSE(collector_.take(now_));
  const std::optional<TraceBook> book = collector_.take(now_ + job_.patience);
  ASSERT_TRUE(book);
  EXPECT_EQ(book->missing, std::vector<TaskId>{kPs0});
  EXPECT_EQ(book->tasks[0].events.size(), 2 * kMaxTracePiece) << "what has come is shown";
}

TEST_F(TraceCollectorTest, TaskThatWasLostBeforeTheStepsIsNotMissing) {
  job_.reached = Step(2);
  job_.members = job_.living = {kPs0, kWorker0};
  collector_.watch(job_);
  send(kPs0);
  send(kWorker0);
  const std::optional<TraceBook> book = collector_.take(now_);
  ASSERT_TRUE(book);
  EXPECT_TRUE(book->missing.empty());
}

TEST_F(TraceCollectorTest, RollbackBeginsAnew) {
  send(kPs0);
  send(kWorker0);
  job_.generation = Generation(2);
  collector_.watch(job_);
  EXPECT_FALSE(collector_.is_collecting(JobId(7)));
  send(kWorker1);  // of the old generation
  EXPECT_FALSE(collector_.is_collecting(JobId(7)));
  for (const TaskId task : {kPs0, kWorker0, kWorker1}) send(task, 2, Generation(2));
  const std::optional<TraceBook> book = collector_.take(now_);
  ASSERT_TRUE(book);
  for (const TaskTrace& task : book->tasks) EXPECT_EQ(task.events.size(), 2u);
}

TEST_F(TraceCollectorTest, JobWithoutAProfileCollectsNothing) {
  job_.job = JobId(8);
  job_.steps = {0, 0};
  collector_.watch(job_);
  collector_.hear(now_, kPs0, TraceEvents{JobId(8), Generation(1), 0, true, 0, {}, {TraceEvent()}});
  EXPECT_FALSE(collector_.is_collecting(JobId(8)));
}

TEST_F(TraceCollectorTest, KeepsNoMoreThanItsBound) {
  std::vector<TraceEvent> many(kMaxTracePiece);
  const std::size_t full = TraceCollector::kMaxEvents / kMaxTracePiece;
  for (std::size_t piece = 0; piece < full + 1; ++piece)
    collector_.hear(
        now_, kPs0,
        TraceEvents{JobId(7), Generation(1), static_cast<std::uint32_t>(piece), piece == full, 0, {}, many});
  send(kWorker0);
  send(kWorker1);
  const std::optional<TraceBook> book = collector_.take(now_);
  ASSERT_TRUE(book);
  EXPECT_EQ(book->tasks[0].events.size(), TraceCollector::kMaxEvents);
  EXPECT_EQ(book->dropped, kMaxTracePiece + 2);
}

}  // namespace
}  // namespace disttrain::chiefd
