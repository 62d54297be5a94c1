// The command line shows what the trainers of a job print.
#include "tools/disttrain/follow/trainer_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace disttrain::cli {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace disttrain::cli
