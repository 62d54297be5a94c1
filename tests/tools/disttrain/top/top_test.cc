// `top` shows sparklines, its history, and frames for terminals of every size. These tests check all three.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tools/disttrain/columns.h"
#include "tools/disttrain/top/frame.h"
#include "tools/disttrain/top/sparkline.h"

namespace disttrain::cli {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const double kNone = std::nan("");

TEST(Columns, CountCharactersAndNotBytes) {
  EXPECT_EQ(columns_of("a▁█"), 3u);
  EXPECT_EQ(cut("a▁█b", 2), "a▁");
  EXPECT_EQ(cut("ab", 5), "ab");
  EXPECT_EQ(cut("ab", 0), "");
}

TEST(Columns, ControlCharactersAreReplaced) {
  EXPECT_EQ(plain("a\x1b[2Jb\n\x7f", true), "a?[2Jb??");
  EXPECT_EQ(plain("é", true), "é");
  EXPECT_EQ(plain("é", false), "??");
}

TEST(Sparkline, RisesFromTheLeastToTheMost) {
  EXPECT_EQ(sparkline({1, 2, 3, 4, 5, 6, 7, 8}, 8, Lowest::kLeast, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({1, 2, 3, 4, 5, 6, 7, 8}, 8, Lowest::kLeast, false), "_.:-=+*#");
}

TEST(Sparkline, FromZeroSmallChangesLookSmall) {
  EXPECT_EQ(sparkline({100, 99, 100}, 3, Lowest::kZero, true), "███");
  EXPECT_EQ(sparkline({100, 99, 100}, 3, Lowest::kLeast, true), "█▁█");
  EXPECT_EQ(sparkline({0, 0}, 2, Lowest::kZero, true), "▁▁");
}

TEST(Sparkline, ShowsTheNewestToTheRight) {
  EXPECT_EQ(sparkline({9, 1, 2}, 2, Lowest::kLeast, true), "▁█");
  EXPECT_EQ(sparkline({1, 2}, 4, Lowest::kLeast, true), "  ▁█");
  EXPECT_EQ(sparkline({}, 2, Lowest::kLeast, true), "  ");
}

TEST(Sparkline, ValueThatIsNotFiniteIsABlank) {
  EXPECT_EQ(sparkline({1, kNone, 2, INFINITY}, 4, Lowest::kLeast, true), "▁ █ ");
  EXPECT_EQ(sparkline({kNone}, 1, Lowest::kZero, true), " ");
}

Json worker(int index, double rate, int lag) {
  return {{"task", "worker/" + std::to_string(index)},
          {"state", "running"},
          {"reason", ""},
          {"phase", "compute"},
          {"step", 1000},
          {"examples_per_second", rate},
          {"loss", 0.5},
          {"lag", lag},
          {"heartbeat_age_seconds", 0.1}};
}

Json training(std::vector<Json> workers = {worker(0, 1000, 0), worker(1, 500, 10)}) {
  Json status = Json::parse(R"({"id": 3, "job": "mnist", "mode": "async", "state": "running",
    "reason": "trains with 2 workers", "global_step": 500, "steps_target": 2000, "steps_per_second": 100.0,
    "examples_per_second": 1400.0, "loss": 0.25})");
  status["tasks"] = workers;
  return status;
}

TEST(TopHistory, JobsRateIsTheSumOfItsWorkersNow) {
  TopHistory history;
  history.add(training());
  history.add(training({worker(0, 1000, 0), worker(1, kNone, 0)}));
  EXPECT_THAT(history.examples_per_second(), ElementsAre(1500, 1000));
  EXPECT_THAT(history.loss(), ElementsAre(0.25, 0.25));
  EXPECT_THAT(history.examples_per_second_of("worker/1"), ElementsAre(500, testing::IsNan()));
}

TEST(TopHistory, AnotherJobClearsItAndAJobThatEndedAddsNothing) {
  TopHistory history;
  history.add(training());
  Json ended = training();
  ended["state"] = "finished";
  history.add(ended);
  EXPECT_THAT(history.loss(), SizeIs(1));
  Json next = training();
  next["id"] = 4;
  history.add(next);
  EXPECT_THAT(history.loss(), SizeIs(1));
  EXPECT_THAT(history.examples_per_second_of("worker/0"), SizeIs(1));
}

TEST(TopHistory, RemembersAMinuteAndForgetsTasksThatAreGone) {
  TopHistory history;
  for (int i = 0; i < 100; ++i) history.add(training());
  history.miss();
  EXPECT_THAT(history.loss(), SizeIs(TopHistory::kMost));
  EXPECT_TRUE(std::isnan(history.loss().back()));
  EXPECT_TRUE(std::isnan(history.examples_per_second_of("worker/1").back()));
  history.add(training({worker(0, 1, 0)}));
  EXPECT_THAT(history.examples_per_second_of("worker/1"), SizeIs(0));
}

TopView view_of(const Json& status) {
  TopView view;
  view.cluster = "mine";
  view.status = status;
  view.history.add(status);
  view.events = Json::array();
  for (const char* text : {"first", "second", "third"})
    view.events.push_back({{"time", 1795218300.0}, {"task", nullptr}, {"text", text}});
  return view;
}

std::vector<std::string> lines_of(const TopView& view, std::size_t columns, std::size_t rows, bool utf8 = true) {
  std::vector<std::string> lines;
  std::istringstream in(top_frame(view, TerminalSize{columns, rows}, utf8));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TopFrame, HasJobCurvesTasksAndEvents) {
  const std::vector<std::string> lines = lines_of(view_of(training()), 100, 24);
  ASSERT_THAT(lines, SizeIs(15));
  EXPECT_EQ(lines[0], "cluster mine  job 3 mnist, async");
  EXPECT_EQ(lines[1], "[#####---------------] running  step 500/2,000 (25%)  ETA 0:15");
  EXPECT_EQ(lines[2], "  trains with 2 workers");
  EXPECT_EQ(lines[3], "examples/s now 1,500, min 1,500, max 1,500");
  EXPECT_EQ(lines[4], "█");
  EXPECT_EQ(lines[5], "loss now 0.2500, min 0.2500, max 0.2500");
  EXPECT_THAT(lines[8], AllOf(HasSubstr("TASK"), HasSubstr("PHASE"), HasSubstr("LAG"), HasSubstr("HEARTBEAT")));
  EXPECT_THAT(lines[9], AllOf(HasSubstr("worker/0"), HasSubstr("1,000  "), HasSubstr("█  0.5000")));
  EXPECT_THAT(lines[10], HasSubstr("worker/1"));
  EXPECT_THAT(lines[14], HasSubstr("third"));
}

TEST(TopFrame, WithoutAnyJobTasksAreShown) {
  Json none = {{"id", nullptr}, {"state", nullptr}, {"tasks", Json::array({worker(0, kNone, 0)})}};
  EXPECT_THAT(top_frame(view_of(none), TerminalSize{}, true),
              AllOf(HasSubstr("no job was submitted yet"), HasSubstr("worker/0"), Not(HasSubstr("examples/s"))));
}

TEST(TopFrame, JobThatHasEndedHasNoEta) {
  Json stopped = training();
  stopped["state"] = "stopped";
  EXPECT_THAT(top_frame(view_of(stopped), TerminalSize{}, true), AllOf(HasSubstr("stopped"), Not(HasSubstr("ETA"))));
}

TEST(TopFrame, LostChiefIsNamedAboveTheLastKnownStatus) {
  TopView view = view_of(training());
  view.problem = "can't reach chief/0";
  EXPECT_THAT(top_frame(view, TerminalSize{}, true),
              AllOf(HasSubstr("can't reach chief/0; trying again"), HasSubstr("worker/0")));
  view.status = Json();
  EXPECT_THAT(top_frame(view, TerminalSize{}, true), HasSubstr("can't reach chief/0; trying again"));
}

TEST(TopFrame, FitsIntoEveryTerminal) {
  std::vector<Json> workers;
  for (int i = 0; i < 40; ++i) workers.push_back(worker(i, 100, i));
  const TopView view = view_of(training(workers));
  for (std::size_t columns : {1u, 10u, 60u, 80u, 81u, 200u})
    for (std::size_t rows = 1; rows < 60; ++rows) {
      const std::vector<std::string> lines = lines_of(view, columns, rows);
      EXPECT_LE(lines.size(), rows);
      for (const std::string& line : lines) EXPECT_LE(columns_of(line), columns) << rows << ": " << line;
    }
}

TEST(TopFrame, SparklinesFitInto80Columns) {
  const std::vector<std::string> lines = lines_of(view_of(training()), 80, 24);
  EXPECT_THAT(lines[9], AllOf(HasSubstr("█"), HasSubstr("100 ms")));
}

TEST(TopFrame, TasksInTroubleOrBehindComeFirstWhereNotAllFit) {
  std::vector<Json> workers;
  for (int i = 0; i < 40; ++i) workers.push_back(worker(i, 100, i == 20 ? 500 : 1));
  workers[30]["state"] = "silent";
  workers[30]["lag"] = nullptr;
  const std::vector<std::string> lines = lines_of(view_of(training(workers)), 80, 24);
  ASSERT_THAT(lines, SizeIs(24));
  EXPECT_THAT(lines[9], HasSubstr("worker/30"));
  EXPECT_THAT(lines[10], HasSubstr("worker/20"));
  EXPECT_THAT(lines[11], HasSubstr("worker/0"));
  EXPECT_EQ(lines[19], "and 30 more");
  EXPECT_THAT(lines[23], HasSubstr("third"));
}

TEST(TopFrame, LowTerminalDropsCurvesAndThenEvents) {
  EXPECT_THAT(top_frame(view_of(training()), TerminalSize{80, 12}, true),
              AllOf(Not(HasSubstr("examples/s now")), HasSubstr("worker/1"), HasSubstr("third")));
  EXPECT_THAT(top_frame(view_of(training()), TerminalSize{80, 8}, true),
              AllOf(Not(HasSubstr("third")), HasSubstr("worker/1"), HasSubstr("step 500")));
}

TEST(TopFrame, ReasonWithATrainersOutputTakesOneLine) {
  TopView view = view_of(training());
  view.status["reason"] = "the trainer ended; its last lines:\\n  Traceback:\\n  KeyError: 'x'";
  EXPECT_THAT(top_frame(view, TerminalSize{}, true), HasSubstr("\n  the trainer ended: KeyError: 'x'\n"));
}

TEST(TopFrame, IsAsciiWhereTheLocaleIs) {
  TopView view = view_of(training());
  view.status["reason"] = "é\x1b[2J";
  const std::string frame = top_frame(view, TerminalSize{}, false);
  EXPECT_THAT(frame, Each(testing::AnyOf(testing::Eq('\n'), testing::AllOf(testing::Ge(' '), testing::Le('~')))));
  EXPECT_THAT(frame, HasSubstr("#"));
}

}  // namespace
}  // namespace disttrain::cli
