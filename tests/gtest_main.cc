// main() of all test programs. ctest learns from the exit code alone that a test was skipped: 77 means that no test
// failed and some were skipped. For each skipped test, a line says its name and the reason. tools/check/skips reads
// these lines.
//
// With a regular expression over the output (SKIP_REGULAR_EXPRESSION), a program in which one test fails and another is
// skipped would count as skipped.
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
