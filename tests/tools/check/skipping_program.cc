// A program whose tests are skipped. tests/tools/check/skips_test.py runs it and checks what ctest learns.
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
