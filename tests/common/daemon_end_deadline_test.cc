#include "common/daemon/end_deadline.h"

#include <gtest/gtest.h>

#include <chrono>
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
      testing::ExitedWithCode(7), "a thread hasn't ended within 0 s");
}

TEST(EndDeadline, ProcessThatEndsInTimeIsLeftAlone) {
  Log log(TaskId{Role::kPs, 0}, LogConfig());
  { const EndDeadline deadline(log, hours(1), 7); }
}

}  // namespace
}  // namespace disttrain::daemon
