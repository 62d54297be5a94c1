// The command line prints a job's progress, summaries, root causes and events. These tests check the texts, and the
// exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <vector>

#include "tools/disttrain/events.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/follow/summary.h"
#include "tools/disttrain/follow/trainer_output.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/printable_output.h"
#include "tools/disttrain/table.h"

namespace disttrain::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Json running() {
  return Json::parse(R"({"job": "mnist", "state": "running", "reason": "", "global_step": 500, "steps_target": 2000,
    "steps_per_second": 100.0, "examples_per_second": 12345.6, "loss": 0.25, "seconds": 5.0, "evaluation": null,
    "code": null, "root_cause": null, "tasks": []})");
}

std::string said(void (*print)(std::ostream&, const Json&), const Json& status) {
  std::ostringstream out;
  print(out, status);
  return out.str();
}

TEST(Output, ShowsCodesOfStrangersAndPassesOurs) {
  std::ostringstream to;
  {
    const PrintableOutput door(to);
    to << "name \x1b[2J" << '\x07' << "\tend\n";
    write_codes(to, "\x1b[K");
    to << "G\xc3" << std::flush << "\xb6\xc2\x9b\xe2\x80\xae \xff" << std::flush << "\xe2\x80";
  }
  EXPECT_EQ(to.str(), "name \\x1b[2J\\x07\tend\n\x1b[KG\xc3\xb6\\x9b\\u202e \\xff\\xe2\\x80");
  to << "\x1b[K";
  EXPECT_TRUE(to.str().ends_with("\x1b[K")) << "nothing is changed any more";
}

TEST(Output, ThatCantBeWrittenIsNoticed) {
  std::ofstream full("/dev/full");
  const PrintableOutput door(full);
  full << std::string(100'000, 'x') << std::flush;
  EXPECT_FALSE(full);
}

TEST(Output, CellsOfATableAreOneLineEach) {
  Table table({"NAME"});
  table.add({"a\nb\x1b[2J"});
  EXPECT_EQ(table.text(), "NAME\na\\nb\\x1b[2J\n");
}

TEST(Output, JsonStaysJsonAndHasNoCodes) {
  const Json json = {{"name", "\x1b\x7f\xc2\x9b\xe2\x80\xae\xc3\xb6"}};
  const std::string line = line_of(json);
  EXPECT_EQ(line, R"({"name":"\u001b\u007f\u009b\u202e\u00f6"})");
  EXPECT_EQ(Json::parse(line), json);
  EXPECT_EQ(line_of(Json{{"name", "\xc3\xb6"}}), "{\"name\":\"\xc3\xb6\"}");
}

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

// A chief that keeps log lines, and answers as the real one does.
class TrainerOutputTest : public testing::Test {
 protected:
  void log(std::uint32_t worker, std::int64_t time, const std::string& text) {
    lines_.push_back(LogLine{time, TaskId{Role::kWorker, worker}, 1, text});
  }
  std::vector<std::string> shown(Output output, const std::vector<Json>& statuses) {
    std::vector<std::string> printed;
    TrainerOutput trainers(
        output,
        [this](const LogsRequest& request) -> Result<LogLines> {
          ++requests_;
          if (is_away_) return fail(ErrorCode::kUnavailable, "away");
          LogLines answer;
          for (const LogLine& line : lines_)
            if (line.wall_nanoseconds >= request.since_wall_nanoseconds && line.wall_nanoseconds < ends_[request.job] &&
                std::find(request.tasks.begin(), request.tasks.end(), line.task) != request.tasks.end())
              answer.lines.push_back(line);
          sent_ += answer.lines.size();
          return answer;
        },
        [&printed](const std::string& line) { printed.push_back(line); });
    for (const Json& status : statuses) {
      if (!status.is_null()) trainers.show(job_, status);
      if (next_) next_();
    }
    return printed;
  }
  // worker/`first` has rank 0.
  static Json status(int first) {
    Json tasks = Json::array({{{"task", "ps/0"}, {"rank", nullptr}}});
    for (int worker = 0; worker < 2; ++worker) {
      const Json rank = first < 0 ? Json() : Json(worker == first ? 0u : 1u);
      tasks.push_back({{"task", "worker/" + std::to_string(worker)}, {"rank", rank}});
    }
    return Json{{"tasks", tasks}};
  }

  std::string job_ = "7";
  std::map<std::string, std::int64_t> ends_ = {{"7", 100}, {"8", 200}};  // the times at which the jobs have ended
  std::vector<LogLine> lines_;
  std::function<void()> next_;
  bool is_away_ = false;
  int requests_ = 0;
  std::size_t sent_ = 0;  // lines
};

TEST_F(TrainerOutputTest, IsThatOfRankZeroAndEachLineIsShownOnce) {
  log(0, 10, "trainer: epoch 1");
  log(0, 11, "job 7: training starts");
  log(1, 12, "trainer: not of rank 0");
  next_ = [this, n = 0]() mutable {
    if (++n == 1) log(0, 20, "trainer: epoch 2");
  };
  EXPECT_THAT(shown(Output::kFirst, {status(0), status(0), status(0)}), ElementsAre("epoch 1", "epoch 2"));
}

TEST_F(TrainerOutputTest, FollowsTheRankToAnotherWorker) {
  log(0, 10, "trainer: epoch 1 of worker/0");
  log(1, 11, "trainer: epoch 1 of worker/1");
  next_ = [this, n = 0]() mutable {
    if (++n == 3) log(1, 20, "trainer: epoch 2 of worker/1");
  };
  EXPECT_THAT(shown(Output::kFirst, {status(-1), status(0), status(1), status(-1)}),
              ElementsAre("epoch 1 of worker/0", "epoch 2 of worker/1"));
}

TEST_F(TrainerOutputTest, OfTheNextJobBeginsWithItsFirstLines) {
  log(0, 10, "trainer: a");
  next_ = [this, n = 0]() mutable {
    if (++n != 1) return;
    job_ = "8";
    log(1, 110, "trainer: b");
  };
  EXPECT_THAT(shown(Output::kFirst, {status(0), status(1)}), ElementsAre("a", "b"));
}

TEST_F(TrainerOutputTest, GoesOnWithTheNextJob) {
  log(0, 10, "trainer: a");
  next_ = [this, n = 0]() mutable {
    if (++n != 1) return;
    job_ = "8";
    log(0, 110, "trainer: b");
  };
  EXPECT_THAT(shown(Output::kFirst, {status(0), status(0)}), ElementsAre("a", "b"));
}

TEST_F(TrainerOutputTest, OfAllWorkersHasTheirNames) {
  log(0, 10, "trainer: a");
  log(1, 5, "trainer: b");
  EXPECT_THAT(shown(Output::kAll, {status(-1)}), ElementsAre("worker/1: b", "worker/0: a"));
}

// Neither a worker that has logged nothing nor one that prints rarely lets the chief send lines of others again.
TEST_F(TrainerOutputTest, OfAllWorkersIsSentOnce) {
  for (int time = 10; time < 20; ++time) log(0, time, "trainer: of worker/0");
  next_ = [this, n = 0]() mutable {
    if (++n == 2) log(1, 5, "trainer: of worker/1, whose clock is slow");
  };
  const auto printed = shown(Output::kAll, {status(-1), status(-1), status(-1), status(-1)});
  EXPECT_EQ(printed.size(), 11U);
  EXPECT_EQ(printed.back(), "worker/1: of worker/1, whose clock is slow");
  EXPECT_EQ(sent_, 11U);
}

TEST_F(TrainerOutputTest, IsAskedForAgainAfterAnError) {
  log(0, 10, "trainer: a");
  is_away_ = true;
  next_ = [this] { is_away_ = false; };
  EXPECT_THAT(shown(Output::kFirst, {status(0), status(0)}), ElementsAre("a"));
}

TEST_F(TrainerOutputTest, OfNoTrainerAsksForNothing) {
  JobConfig job;
  EXPECT_EQ(output_of("all", job), Output::kNone);
  job.model.trainer = {"python3"};
  EXPECT_EQ(output_of("all", job), Output::kAll);
  EXPECT_EQ(output_of("rank0", job), Output::kFirst);
  EXPECT_EQ(output_of("none", job), Output::kNone);
  EXPECT_THAT(shown(Output::kNone, {status(0)}), ElementsAre());
  EXPECT_EQ(requests_, 0);
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

Json event(double time, const char* kind, const char* text) {
  return {{"time", time}, {"job", 1}, {"kind", kind}, {"task", "ps/0"}, {"step", 0}, {"text", text}};
}

class EventLine : public testing::Test {
 protected:
  EventLine() {
    setenv("TZ", "UTC0", 1);
    tzset();
  }
};

TEST_F(EventLine, SaysTimeTaskAndText) {
  EXPECT_EQ(event_line(event(1795218300.25, "task_lost", "ps/0: gone")),
            "2026-11-20 23:45:00.250 ps/0      ps/0: gone");
}

TEST_F(EventLine, ShowsATracebackInLines) {
  EXPECT_EQ(event_line(event(1795218300.25, "worker_lost", "its last lines:\\n  File\\n    raise")),
            "2026-11-20 23:45:00.250 ps/0      its last lines:\n      File\n        raise");
}

TEST_F(EventLine, EventOfNoTaskHasADash) {
  Json of_no_task = event(1795218300.25, "paused", "waits");
  of_no_task["task"] = nullptr;
  EXPECT_EQ(event_line(of_no_task), "2026-11-20 23:45:00.250 -         waits");
}

TEST_F(EventLine, EventWithoutAnyKeyIsNoError) {
  EXPECT_THAT(event_line(Json::object()), testing::StartsWith("-"));
}

TEST(SeenEvents, AreShownOnceAlsoAfterARestartOfTheChief) {
  const Json first = event(1, "running", "a");
  const Json second = event(2, "paused", "b");
  const Json third = event(3, "running", "c");
  RepeatFilter filter;
  EXPECT_EQ(take_new(filter, Json::array({first})), Json::array({first}));
  EXPECT_EQ(take_new(filter, Json::array({second})), Json::array({second}));
  // A restarted chief sends all events again.
  EXPECT_EQ(take_new(filter, Json::array({first, second, third})), Json::array({third}));
}

TEST(SeenEvents, ThatARestartedChiefDoesntKnowHideNoneOfItsOwn) {
  const Json durable = event(1, "running", "a");
  const Json lost = event(2, "paused", "b");
  const Json after = event(3, "running", "c");
  RepeatFilter filter;
  take_new(filter, Json::array({durable, lost}));
  EXPECT_EQ(take_new(filter, Json::array({durable, after})), Json::array({after}));
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

TEST(Table, AlignsColumns) {
  Table table({"TASK", "N"});
  table.add({"worker/10", "5"});
  table.add({"ps/0", "12345"});
  EXPECT_EQ(table.text(), "TASK           N\nworker/10      5\nps/0       12345\n");
}

}  // namespace
}  // namespace disttrain::cli
