#include "chiefd/log_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/bounds.h"

namespace disttrain::chiefd {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

constexpr TaskId kLoggingTask{Role::kWorker, 1};

LogLines lines(std::size_t count, std::size_t bytes, std::int64_t first = 0) {
  LogLines lines;
  for (std::size_t i = 0; i < count; ++i)
    lines.lines.push_back(LogLine{first + static_cast<std::int64_t>(i), TaskId{}, 1, std::string(bytes, 'x')});
  return lines;
}

TEST(LogStore, KeepsTheNewestLinesOfATask) {
  LogStore store;
  store.add(kLoggingTask, lines(kKeptLines + 10, 10));
  const std::vector<LogLine> kept = store.find({});
  ASSERT_EQ(kept.size(), kKeptLines);
  EXPECT_EQ(kept.front().wall_nanoseconds, 10);
  EXPECT_EQ(kept.front().task, kLoggingTask) << "whatever the line says of itself";
}

TEST(LogStore, TailHasTheNewestLinesOfTheTime) {
  LogStore store;
  store.add(kLoggingTask, LogLines{{LogLine{10, TaskId{}, 1, "earlier job"}, LogLine{20, TaskId{}, 1, "a"},
                                    LogLine{30, TaskId{}, 1, "b"}, LogLine{40, TaskId{}, 1, "c"},
                                    LogLine{50, TaskId{}, 1, "later job"}},
                                   0});
  LogFilter of_job;
  of_job.since_wall_nanoseconds = 20;
  of_job.until_wall_nanoseconds = 40;
  EXPECT_THAT(store.tail(kLoggingTask, 2, of_job), ElementsAre(EndsWith("b"), EndsWith("c")));
  EXPECT_THAT(store.tail(kLoggingTask, 9, of_job), ElementsAre(EndsWith("a"), EndsWith("b"), EndsWith("c")));
}

TEST(LogStore, KeepsNoMoreBytesOfATaskThanItsBound) {
  LogStore store;
  store.add(kLoggingTask, lines(kKeptLines, kMaxTextBytes * 2));
  const std::vector<LogLine> kept = store.find({});
  EXPECT_EQ(kept.size(), kKeptBytes / kMaxTextBytes);
  EXPECT_EQ(kept.back().text.size(), kMaxTextBytes);
  EXPECT_EQ(kept.back().wall_nanoseconds, static_cast<std::int64_t>(kKeptLines) - 1);
}

TEST(LogStore, AnswerHasTheNewestLinesThatFitIntoOneMessage) {
  LogStore store;
  constexpr std::size_t kTasks = 2 * kMaxAnswerBytes / kKeptBytes;
  for (std::uint32_t i = 0; i < kTasks; ++i)
    store.add(TaskId{Role::kWorker, i}, lines(kKeptBytes / kMaxTextBytes, kMaxTextBytes, 1000 * i));
  const std::vector<LogLine> found = store.find({});
  EXPECT_EQ(found.size(), kMaxAnswerBytes / kMaxTextBytes);
  EXPECT_EQ(found.back().task, (TaskId{Role::kWorker, kTasks - 1}));
}

}  // namespace
}  // namespace disttrain::chiefd
