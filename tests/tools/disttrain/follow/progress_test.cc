// While a job runs, the command line shows its progress and its new warnings. Each of them is one line.
#include "tools/disttrain/follow/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/tools/disttrain/follow/running_job.h"

namespace disttrain::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ProgressLine, SaysStepShareRateLossAndEta) {
  EXPECT_EQ(progress_line(running()), "running  step 500/2,000 (25%)  12,346 examples/s  loss 0.2500  ETA 0:15");
}

TEST(ProgressLine, LeavesOutWhatIsntKnown) {
  Json status = running();
  status["steps_target"] = 0;
  status["loss"] = nullptr;
  status["examples_per_second"] = 0;
  EXPECT_EQ(progress_line(status), "running  step 500");
}

TEST(ProgressLine, StatusWithoutAnyKeyIsNoError) {
  EXPECT_THAT(progress_line(Json::object()), HasSubstr("step -"));
}

TEST(FirstNewWarning, IsTheOneBehindTheLastThatWasSeen) {
  EXPECT_EQ(first_new_warning({}, {"a", "b"}), 0u);
  EXPECT_EQ(first_new_warning({"a", "b"}, {"a", "b"}), 2u);
  EXPECT_EQ(first_new_warning({"a", "b"}, {"a", "b", "c"}), 2u);
}

TEST(FirstNewWarning, MayHaveTheTextOfAnOldOne) {
  EXPECT_EQ(first_new_warning({"a"}, {"a", "a"}), 1u);
}

TEST(FirstNewWarning, IsFoundAfterTheChiefHasDroppedTheOldest) {
  EXPECT_EQ(first_new_warning({"a", "b", "c"}, {"b", "c", "d"}), 2u);
}

TEST(FirstNewWarning, IsFoundAfterARestartedChiefHasLostTheNewest) {
  EXPECT_EQ(first_new_warning({"a", "b"}, {"a"}), 1u);
  EXPECT_EQ(first_new_warning({"a", "b", "c"}, {"a", "b", "d"}), 2u);
  EXPECT_EQ(first_new_warning({"a", "b"}, {}), 0u);
}

TEST(Progress, PrintsTheFirstLineOfEachNewWarningOnce) {
  std::ostringstream out;
  Progress progress(out);
  Json status = running();
  status["warnings"] = Json::array({"lost worker/0: the trainer raised\\n  Traceback"});
  progress.show(status);
  progress.show(status);
  status["warnings"].push_back("lost worker/1: the connection was closed");
  progress.show(status);
  const std::string text = out.str();
  EXPECT_EQ(text.find("warning: lost worker/0: the trainer raised\n"), text.rfind("warning: lost worker/0")) << text;
  EXPECT_THAT(text, HasSubstr("warning: lost worker/0: the trainer raised\n"));
  EXPECT_THAT(text, HasSubstr("warning: lost worker/1: the connection was closed\n"));
}

TEST(ProgressLine, CountsRecoveries) {
  Json status = running();
  status["recoveries"] = 1;
  EXPECT_THAT(progress_line(status), HasSubstr("loss 0.2500  1 recovery  ETA"));
  status["recoveries"] = 2;
  EXPECT_THAT(progress_line(status), HasSubstr("  2 recoveries  "));
}

TEST(ProgressLine, CountsSkippedSteps) {
  Json status = running();
  status["skipped"] = 1234;
  EXPECT_THAT(progress_line(status), HasSubstr("loss 0.2500  1,234 skipped  ETA"));
  status["skipped"] = 0;
  EXPECT_THAT(progress_line(status), Not(HasSubstr("skipped")));
}

TEST(Progress, WarnsOnceOfSkippedSteps) {
  std::ostringstream out;
  Progress progress(out);
  Json status = running();
  status["skipped"] = 0;
  progress.show(status);
  EXPECT_THAT(out.str(), Not(HasSubstr("warning")));
  for (const int skipped : {1, 2, 3}) {
    status["skipped"] = skipped;
    progress.show(status);
  }
  EXPECT_THAT(
      out.str(),
      HasSubstr("warning: 1 step was skipped, because a loss, a gradient, a state variable or an update was NaN or "
                "infinite; "));
  EXPECT_THAT(out.str(), Not(HasSubstr("steps were skipped")));
}

TEST(Headline, OfATrainersErrorEndsWithTheLastLineThatItPrinted) {
  const std::string error = "lost worker/0: the trainer ended with exit code 1 (in step 7); its last lines:";
  EXPECT_EQ(headline(error + "\\n  Traceback (most recent call last):\\n    File \"a.py\"\\n  ValueError: bad label"),
            "lost worker/0: the trainer ended with exit code 1 (in step 7): ValueError: bad label");
  EXPECT_EQ(headline(error), "lost worker/0: the trainer ended with exit code 1 (in step 7)");
  EXPECT_EQ(headline("lost worker/0: a reason"), "lost worker/0: a reason");
  EXPECT_EQ(headline("one\n  two"), "one");
}

TEST(Headline, OfACrashEndsWithTheLineThatCrashed) {
  const std::string error = "lost worker/0: the trainer was killed by signal 11 (in step 3); its last lines:";
  EXPECT_EQ(headline(error + "\n  Fatal Python error: Segmentation fault\n  Stack (most recent call first):"
                             "\n    File \"a.py\", line 11 in f\n    File \"a.py\", line 2 in <module>"
                             "\n  Extension modules: numpy.linalg (total: 1)"),
            "lost worker/0: the trainer was killed by signal 11 (in step 3): File \"a.py\", line 11 in f");
}

TEST(Bar, ShareIsCutToZeroAndOne) {
  EXPECT_EQ(bar(0.5, 4), "[##--]");
  EXPECT_EQ(bar(-1, 4), "[----]");
  EXPECT_EQ(bar(7, 4), "[####]");
  EXPECT_EQ(bar(std::nan(""), 4), "[----]");
}

TEST(Numbers, AreReadable) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(clock_text(75), "1:15");
  EXPECT_EQ(clock_text(3723), "1:02:03");
}

}  // namespace
}  // namespace disttrain::cli
