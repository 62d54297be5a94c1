// At a job's end, the command line prints a summary and the root cause of a failure, and chooses the exit code.
#include "tools/disttrain/follow/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <sstream>
#include <string>

#include "tests/tools/disttrain/follow/running_job.h"
#include "tools/disttrain/follow/progress.h"

namespace disttrain::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string said(void (*print)(std::ostream&, const Json&), const Json& status) {
  std::ostringstream out;
  print(out, status);
  return out.str();
}

TEST(ExitCode, FollowsTheState) {
  Json status = running();
  status["state"] = "finished";
  EXPECT_EQ(exit_code_of(status), 0);
  status["state"] = "stopped";
  EXPECT_EQ(exit_code_of(status), 2);
  status["state"] = "failed";
  EXPECT_EQ(exit_code_of(status), 1);
  status["code"] = 65;
  EXPECT_EQ(exit_code_of(status), 65);
}

TEST(RootCause, NamesTaskReasonLogAndAdvice) {
  const Json status = failed_status(running(), "mnist", "ps/0", "pid 7 was killed", SIGKILL, {"a", "b"});
  EXPECT_EQ(status["state"], "failed");
  EXPECT_EQ(status["reason"], "ps/0: pid 7 was killed");
  EXPECT_EQ(status["global_step"], 500);
  EXPECT_THAT(said(print_root_cause, status), AllOf(HasSubstr("job mnist failed because of ps/0: pid 7 was killed\n"),
                                                    HasSubstr("last log lines of ps/0:\n  | a\n  | b\n"),
                                                    HasSubstr("what to do: "), HasSubstr("memory")));
}

TEST(RootCause, ATrainersTracebackIsShownInLinesAndOnce) {
  const Json status = failed_status(running(), "mnist", "worker/0",
                                    "the trainer ended (in step 7); its last lines:\\n  File \"C:\\new\"\\n    raise",
                                    std::nullopt, {"trainer: File"});
  const std::string text = said(print_root_cause, status);
  EXPECT_THAT(text, HasSubstr("(in step 7); its last lines:\n  File \"C:\\new\"\n    raise\nwhat to do: "));
  EXPECT_THAT(text, Not(HasSubstr("trainer: File")));
}

TEST(RootCause, FollowsTheLogLines) {
  const Json status = failed_status(running(), "mnist", "worker/0", "killed by signal 9", std::nullopt, {"a", "b"});
  EXPECT_THAT(said(print_root_cause, status),
              HasSubstr("  | a\n  | b\njob mnist failed because of worker/0: killed by signal 9\nwhat to do: "));
}

TEST(RootCause, OfAJobThatNeverHadAStatusHasAllKeys) {
  const Json status = failed_status(Json(), "mnist", "chief/0", "gone", std::nullopt, {});
  for (const char* key :
       {"job", "state", "reason", "global_step", "seconds", "steps_per_second", "examples_per_second", "loss",
        "metrics", "evaluation", "transport", "generation", "recoveries", "skipped", "checkpoint", "tasks"})
    EXPECT_TRUE(status.contains(key)) << key;
  EXPECT_EQ(status["job"], "mnist");
}

TEST(RootCause, AdviceDependsOnTheSignalAndNotOnTheReason) {
  const auto way_out = [](std::optional<int> signal) {
    return said(print_root_cause, failed_status(Json(), "mnist", "ps/0", "signal 9, signal 11, signal 6", signal, {}));
  };
  EXPECT_THAT(way_out(SIGKILL), HasSubstr("out of memory"));
  EXPECT_THAT(way_out(SIGSEGV), HasSubstr("a bug of disttrain"));
  EXPECT_THAT(way_out(SIGTERM), HasSubstr("can be submitted again"));
  EXPECT_THAT(way_out(std::nullopt), HasSubstr("can be submitted again"));
}

TEST(RootCause, OfAJobWithACheckpointNamesTheVerbThatGoesOnFromIt) {
  Json status = failed_status(running(), "mnist", "ps/0", "no memory", std::nullopt, {});
  EXPECT_THAT(said(print_root_cause, status), Not(HasSubstr("resubmit")));
  status["checkpoint"] = "/c/mnist/gen-1-step-00000000000000000005";
  EXPECT_THAT(said(print_root_cause, status),
              HasSubstr("`disttrain resubmit mnist` goes on from its newest checkpoint"));
}

TEST(RootCause, IsNotPrintedForAFinishedJob) {
  Json status = running();
  status["state"] = "finished";
  EXPECT_EQ(said(print_root_cause, status), "");
}

TEST(Summary, SaysAccuracyTimeAndRate) {
  Json status = running();
  status["state"] = "finished";
  status["reason"] = "trained 500 steps";
  status["evaluation"] = {{"accuracy", 0.93125}, {"loss", 0.2}, {"examples", 1000}};
  EXPECT_THAT(said(print_summary, status), AllOf(HasSubstr("job mnist finished: trained 500 steps"),
                                                 HasSubstr("500 steps, trained for 5 s, 12,346 examples/s"),
                                                 HasSubstr("test accuracy 0.9313, loss 0.2000 over 1,000 examples")));
}

TEST(Summary, PrintsTheOutputOfALostTrainerOnce) {
  Json status = running();
  status["warnings"] = {"lost worker/0: it ended in step 7; its last lines:\n  Traceback\n  ValueError",
                        "lost worker/1: it ended in step 9; its last lines:\n  Traceback\n  ValueError",
                        "lost worker/0: it ended in step 9; its last lines:\n  KeyError"};
  EXPECT_THAT(said(print_summary, status),
              HasSubstr("  warning: lost worker/0: it ended in step 7; its last lines:\n    Traceback\n    ValueError\n"
                        "  warning: lost worker/1: it ended in step 9; its last lines: (as above)\n"
                        "  warning: lost worker/0: it ended in step 9; its last lines:\n    KeyError\n"));
}

TEST(Summary, CountsSkippedSteps) {
  Json status = running();
  EXPECT_THAT(said(print_summary, status), Not(HasSubstr("skipped")));
  status["skipped"] = 12;
  EXPECT_THAT(said(print_summary, status), HasSubstr("\n  warning: 12 steps were skipped, because a loss, a gradient, "
                                                     "a state variable or an update was NaN or infinite; a lower "
                                                     "learning rate or [train.clip] may help\n"));
}

TEST(Summary, SaysThatNothingWasTrainedIfEachStepWasSkipped) {
  Json status = running();
  status["global_step"] = 5;
  status["skipped"] = 5;
  EXPECT_THAT(skipped_text(status), testing::StartsWith("no step was applied so far: 5 steps were skipped, because"));
  status["state"] = "finished";
  const std::string text = said(print_summary, status);
  EXPECT_THAT(text,
              HasSubstr("\n  warning: nothing was trained, as no step was applied: 5 steps were skipped, because a "
                        "loss, a gradient, a state variable or an update was NaN or infinite; most likely the "
                        "data, the initial values or the loss has such values\n"));
  EXPECT_THAT(text, Not(HasSubstr("learning rate")));
  status["skipped"] = 4;
  EXPECT_THAT(said(print_summary, status), HasSubstr("learning rate"));
}

TEST(Summary, NamesEachMetricWithTheAccuracyFirst) {
  Json status = running();
  status["evaluation"] = {{"accuracy", 0.93125},
                          {"loss", 0.2},
                          {"examples", 1000},
                          {"metrics", {{"auc", 0.5}, {"recall", nullptr}, {"accuracy", 0.93125}, {"top_5", 0.75}}}};
  EXPECT_THAT(said(print_summary, status),
              HasSubstr("  test accuracy 0.9313, auc 0.5000, top_5 0.7500, loss 0.2000 over 1,000 examples\n"));
  status["evaluation"] = {{"accuracy", nullptr}, {"loss", 0.2}, {"examples", 1000}, {"metrics", {{"mae", 0.5}}}};
  EXPECT_THAT(said(print_summary, status), HasSubstr("  test mae 0.5000, loss 0.2000 over 1,000 examples\n"));
  status["evaluation"] = {{"accuracy", nullptr}, {"loss", 0.2}, {"examples", 1000}, {"metrics", Json::object()}};
  EXPECT_THAT(said(print_summary, status), HasSubstr("  test loss 0.2000 over 1,000 examples\n"));
}

TEST(Summary, LeavesOutWhatIsNotKnown) {
  Json status = running();
  status["seconds"] = 0.0;
  status["loss"] = nullptr;
  EXPECT_THAT(said(print_summary, status), AllOf(HasSubstr("  500 steps\n"), Not(HasSubstr("loss"))));
}

TEST(Summary, ShowsATracebackInAWarningInLinesAndARowOfTheSameOnce) {
  Json status = running();
  const char* const lost = "lost worker/0: the trainer ended; its last lines:\\n  File \"C:\\new\"\\n    raise";
  status["warnings"] = {lost, lost, "slow", lost};
  const std::string shown = "lost worker/0: the trainer ended; its last lines:\n    File \"C:\\new\"\n      raise\n";
  EXPECT_THAT(said(print_summary, status),
              testing::EndsWith("  warning (2 times): " + shown +
                                "  warning: slow\n  warning: lost worker/0: the trainer ended; its last lines: (as "
                                "above)\n"));
}

TEST(Summary, SaysRecoveriesAndTheNewestCheckpoint) {
  Json status = running();
  EXPECT_THAT(said(print_summary, status), AllOf(Not(HasSubstr("recover")), Not(HasSubstr("checkpoint"))));
  status["recoveries"] = 1;
  status["checkpoint"] = "/data/mnist/gen-2-step-1000";
  EXPECT_THAT(said(print_summary, status),
              AllOf(HasSubstr("  1 recovery\n"), HasSubstr("  newest checkpoint /data/mnist/gen-2-step-1000\n")));
}

TEST(Phases, AreShownPerWorkerWithTheirShares) {
  Json status = running();
  status["tasks"] = {
      {{"task", "ps/0"}},
      {{"task", "worker/0"},
       {"phase_times", {{"input", 1.0}, {"pull", 0.0}, {"compute", 3.0}, {"push", 0.0}, {"wait", 0.0}}}}};
  EXPECT_THAT(said(print_phases, status),
              AllOf(HasSubstr("100.0 steps/s"), HasSubstr("worker/0"), HasSubstr("3 s (75%)"), Not(HasSubstr("ps/0"))));
}

}  // namespace
}  // namespace disttrain::cli
