// A test program that leaves tests out, for tests/tools/check/skips_test.py: it shows what ctest is told of that.
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
