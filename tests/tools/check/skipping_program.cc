// A test program that skips tests, for tests/tools/check/skips_test.py, which checks what ctest learns of that.
#include <gtest/gtest.h>

namespace {

TEST(Skipping, Runs) {
  SUCCEED();
}

TEST(Skipping, LeavesSomethingOut) {
  GTEST_SKIP() << "no device here,\nnor elsewhere";
}

TEST(Skipping, Fails) {
  FAIL();
}

}  // namespace
