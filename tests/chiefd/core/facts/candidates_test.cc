#include "chiefd/core/job/facts/candidates.h"

#include <gtest/gtest.h>

namespace disttrain::chiefd {
namespace {

Task worker(std::uint64_t incarnation, std::uint64_t pid) {
  Task task;
  task.member = Member{TaskId{Role::kWorker, 1}, Incarnation(incarnation)};
  task.hello.member = task.member;
  task.hello.host = "host";
  task.hello.pid = pid;
  return task;
}

constexpr TaskId kWorker1{Role::kWorker, 1};

// It lacks the same as before.
TEST(Candidates, ProcessThatIsLeftOutStaysOutWhenItStartsOver) {
  Candidates candidates;
  const Task task = worker(1, 7);
  candidates.retry_later(task.member, Instant());
  candidates.keep_out(kWorker1, "can't take part, and is asked again");
  candidates.leave_out(task, "can't take part");
  const Task again = worker(2, 7);
  candidates.meet(again);
  EXPECT_TRUE(candidates.is_left_out(again));
  EXPECT_EQ(candidates.kept_out().count(kWorker1), 1u);
}

TEST(Candidates, AnotherProcessOfTheTaskMayTakePart) {
  Candidates candidates;
  candidates.leave_out(worker(1, 7), "can't take part");
  const Task another = worker(2, 8);
  candidates.meet(another);
  EXPECT_FALSE(candidates.is_left_out(another));
  EXPECT_EQ(candidates.kept_out().count(kWorker1), 0u);
}

TEST(Candidates, ProcessThatIsAskedAgainIsLetInWhenAnotherComes) {
  Candidates candidates;
  candidates.retry_later(worker(1, 7).member, Instant());
  candidates.keep_out(kWorker1, "can't take part, and is asked again");
  candidates.meet(worker(2, 7));
  EXPECT_EQ(candidates.kept_out().count(kWorker1), 0u);
}

}  // namespace
}  // namespace disttrain::chiefd
