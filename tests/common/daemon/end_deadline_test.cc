#include "common/daemon/end_deadline.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

namespace disttrain::daemon {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(EndDeadlineDeathTest, ProcessThatDoesNotEndIsEndedAndSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Log log(TaskId{Role::kPs, 0}, LogConfig());
        const EndDeadline deadline(log, milliseconds(20), 7);
        std::this_thread::sleep_for(hours(1));
      },
      testing::ExitedWithCode(7), "a thread hasn't ended within 20 ms");
}

// The process that reads stderr hangs too, so a line that is written there would block the daemon.
TEST(EndDeadlineDeathTest, LineThatNobodyTakesDoesNotHoldTheEndUp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        int ends[2];
        if (::pipe2(ends, O_NONBLOCK) != 0) std::abort();
        const std::string much(65536, 'x');
        while (::write(ends[1], much.data(), much.size()) > 0) continue;
        while (::write(ends[1], "x", 1) > 0) continue;
        ::fcntl(ends[1], F_SETFL, 0);
        ::dup2(ends[1], STDERR_FILENO);
        Log log(TaskId{Role::kPs, 0}, LogConfig());
        const EndDeadline deadline(log, milliseconds(20), 7);
        std::this_thread::sleep_for(hours(1));
      },
      testing::ExitedWithCode(7), "");
}

std::size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// The thread of the deadline must be gone, so that it can't end the process later.
TEST(EndDeadline, ProcessThatEndsInTimeIsLeftAlone) {
  Log log(TaskId{Role::kPs, 0}, LogConfig());
  std::thread([] {}).join();  // with the first thread, a sanitizer also starts one of its own
  const std::size_t before = threads();
  testing::internal::CaptureStderr();
  {
    const EndDeadline deadline(log, hours(1), 7);
    EXPECT_EQ(threads(), before + 1);
  }
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace disttrain::daemon
