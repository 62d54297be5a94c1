// main() of all test programs. ctest knows a skipped test by its exit code alone: 77 where all that ran passed and
// something was left out. Each test that was left out is named, with its reason, in a line that tools/check/skips
// reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>

namespace {

constexpr int kSkipped = 77;

std::string reason_of(const testing::TestResult& result) {
  for (int i = 0; i < result.total_part_count(); ++i) {
    if (!result.GetTestPartResult(i).skipped()) continue;
    std::string reason = result.GetTestPartResult(i).message();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    return reason;
  }
  return "no reason was given";
}

void name_skipped_tests() {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (test.result()->Skipped())
        std::cout << "SKIPPED: " << suite.name() << "." << test.name() << ": " << reason_of(*test.result()) << '\n';
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  name_skipped_tests();
  if (failed != 0) return failed;
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? kSkipped : 0;
}
