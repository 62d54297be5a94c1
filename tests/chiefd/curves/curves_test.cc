#include "chiefd/curves/curves.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <mutex>
#include <thread>

#include "chiefd/status_json.h"
#include "chiefd/status_page/status_page.h"
#include "tests/chiefd/core/recovery_fixture.h"
#include "tests/chiefd/curves/event_folder.h"

namespace disttrain::chiefd {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

JobStatus status_at(std::uint64_t step, const fs::path& checkpoints = "") {
  JobStatus status;
  status.job = JobId(1);
  status.name = "digits";
  status.state = JobState::kRunning;
  status.part = JobPart::kTrain;
  status.global_step = step;
  status.examples = step * 10;
  status.loss = 1.0 / static_cast<double>(step + 1);
  status.learning_rate = 0.5;
  status.checkpoint_directory = checkpoints;
  return status;
}

std::vector<std::uint64_t> steps_of(const Curves& curves) {
  std::vector<std::uint64_t> steps;
  for (const CurvePoint& point : curves.points()) steps.push_back(point.step);
  return steps;
}

const Instant kStart{1h};

TEST(Curves, PointsHaveTheSpeedSinceTheLastLook) {
  Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
  curves.look(kStart, kWall, status_at(500));
  curves.look(kStart + 2s, kWall, status_at(600));
  ASSERT_EQ(steps_of(curves), (std::vector<std::uint64_t>{500, 600}));
  EXPECT_EQ(curves.points()[0].steps_per_second, std::nullopt);  // the first look() can't know when the job began
  EXPECT_DOUBLE_EQ(curves.points()[1].steps_per_second.value(), 50);
  EXPECT_DOUBLE_EQ(curves.points()[1].examples_per_second.value(), 500);
}

TEST(Curves, StandstillAddsNoPoint) {
  Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
  for (int i = 0; i < 5; ++i) curves.look(kStart + i * 1s, kWall, status_at(7));
  EXPECT_EQ(steps_of(curves), (std::vector<std::uint64_t>{7}));
}

TEST(Curves, IsDueOftenAtFirstAndEachSecondLater) {
  Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
  curves.look(kStart, kWall, status_at(1));
  EXPECT_FALSE(curves.is_due(kStart + 99ms));
  EXPECT_TRUE(curves.is_due(kStart + 100ms));
  curves.look(kStart + 1h, kWall, status_at(2));
  EXPECT_FALSE(curves.is_due(kStart + 1h + 999ms));
  EXPECT_TRUE(curves.is_due(kStart + 1h + 1s));
}

TEST(Curves, TooManyPointsAreThinnedOutAndStillSpanTheWholeJob) {
  Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
  constexpr std::uint64_t kMany = 10 * Curves::kMaxPoints;
  for (std::uint64_t step = 1; step <= kMany; ++step)
    curves.look(kStart + static_cast<int>(step) * 1s, kWall, status_at(step));
  EXPECT_LE(curves.points().size(), Curves::kMaxPoints);
  EXPECT_GE(curves.points().size(), Curves::kMaxPoints / 2);
  EXPECT_LT(curves.points().front().step, 100u);
  EXPECT_EQ(curves.points().back().step, kMany);
}

// The curves that the chief makes from the status and the events of a running job.
constexpr double kRate = 0.25;  // the learning rate that the pacer reports

class CurvesOfAJob : public RecoveryTest {
 protected:
  CurvesOfAJob() { fs::create_directory(folder_.path() / "a"); }

  JobConfig with_events() const {
    JobConfig config = with_checkpoints();
    config.checkpoint.directory = folder_.path();
    return config;
  }
  void report(std::uint64_t step) {
    pacer_.examples = step * 10;
    pacer_.loss = 1.0 / static_cast<double>(step);
    report_pacer(step, 0);
  }
  void look(JobId job) { curves_->look(now_, kWall, status(job)); }
  void hear(const std::string& kind) {
    for (const EventRecord& event : journal_.events)
      if (event.kind == kind) return curves_->hear(event);
    ADD_FAILURE() << "no " << kind;
  }
  std::string written() {
    curves_.reset();
    return folder_.bytes("a/events");
  }
  static std::string record_of(std::uint64_t step, double learning_rate, double steps_per_second = 0.0) {
    std::vector<Scalar> scalars{{"train/loss", 1.0 / static_cast<double>(step)},
                                {"train/learning_rate", learning_rate}};
    if (steps_per_second > 0.0) scalars.push_back({"train/steps_per_second", steps_per_second});
    if (steps_per_second > 0.0) scalars.push_back({"train/examples_per_second", steps_per_second * 10});
    return scalars_record(kWall, step, scalars);
  }

  const EventFolder folder_;
  std::optional<Curves> curves_{[](const std::string& why) { ADD_FAILURE() << why; }};
};

TEST_F(CurvesOfAJob, RollbackTakesBackWhatComesAfterItHoweverSoonTheJobIsBeyond) {
  const JobId job = train(with_events());
  pacer_.learning_rate = kRate;
  report(100);
  look(job);
  now_ += 1s;
  report(200);
  look(job);
  newest_ = restore_point(120);
  kill(ps(0));
  pacer_ = newest_->pacer;
  pacer_.learning_rate = kRate;
  restart(ps(0));
  hear("rolled_back");
  EXPECT_EQ(steps_of(*curves_), (std::vector<std::uint64_t>{100}));
  now_ += 1s;
  report(250);
  look(job);
  EXPECT_EQ(steps_of(*curves_), (std::vector<std::uint64_t>{100, 250}));
  const std::int64_t rolled_back_at = now_.time_since_epoch().count() - Duration(1s).count();
  EXPECT_EQ(hexadecimal(written()),
            hexadecimal(version_record(kWall) + restart_record(kWall, 100) + record_of(100, kRate) +
                        record_of(200, kRate, 100) + restart_record(rolled_back_at, 121) + record_of(250, kRate)));
}

TEST_F(CurvesOfAJob, NewChiefShowsNothingBeforeItKnowsWhereTheJobIs) {
  const JobId job = train(with_events());
  pacer_.learning_rate = kRate;
  journal_.jobs.at(job).checkpoint = CheckpointRecord{job, Generation(1), Step(20), folder_.path() / "a/step"};
  report(5000);
  restart_chief();
  look(job);
  hello_again(ps(0));
  hello_again(ps(1));
  now_ += 1s;
  look(job);
  EXPECT_EQ(steps_of(*curves_), (std::vector<std::uint64_t>{}));
  hello_again(worker(0));
  hello_again(worker(1));
  look(job);
  now_ += 1s;
  report(5100);
  look(job);
  EXPECT_EQ(steps_of(*curves_), (std::vector<std::uint64_t>{5000, 5100}));
  EXPECT_EQ(hexadecimal(written()), hexadecimal(version_record(kWall) + restart_record(kWall, 5000) +
                                                record_of(5000, kRate) + record_of(5100, kRate, 100)));
}

TEST_F(CurvesOfAJob, RollbackBeforeTheFirstLookCounts) {
  const JobId job = train(with_events());
  newest_ = restore_point(120);
  kill(ps(0));
  pacer_ = newest_->pacer;
  pacer_.learning_rate = kRate;
  restart(ps(0));
  hear("rolled_back");
  report(250);
  look(job);
  EXPECT_EQ(steps_of(*curves_), (std::vector<std::uint64_t>{250}));
  EXPECT_THAT(written(), testing::StartsWith(version_record(now_.time_since_epoch().count()) +
                                             restart_record(now_.time_since_epoch().count(), 121)));
}

TEST(Curves, RestoredJobKeepsEarlierRecordsUpToItsFirstStep) {
  const EventFolder folder;
  fs::create_directory(folder.path() / "digits");
  {
    Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
    JobStatus status = status_at(100, folder.path());
    status.part = JobPart::kInit;
    curves.look(kStart, kWall, status);
    curves.hear(EventRecord{kWall, JobId(1), "restored", "", 100, "begins at step 100"});
    curves.look(kStart + 1s, kWall, status_at(100, folder.path()));
    curves.look(kStart + 2s, kWall, status_at(101, folder.path()));
    EXPECT_EQ(steps_of(curves), (std::vector<std::uint64_t>{101}));
  }
  EXPECT_TRUE(folder.bytes("digits/events").starts_with(version_record(kWall) + restart_record(kWall, 101)));
}

TEST(Curves, EachEvaluationIsRecordedOnce) {
  Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
  JobStatus status = status_at(100);
  status.evaluation = EvaluationStatus{.step = Step(90), .loss = 0.5, .metrics = {{"auc", 0.9}}, .examples = 10};
  curves.look(kStart, kWall, status);
  curves.look(kStart + 1s, kWall, status);
  EXPECT_EQ(curves.evaluations().size(), 1u);
  status.evaluation->final = true;
  status.evaluation->step = Step(100);
  curves.look(kStart + 2s, kWall, status);
  EXPECT_EQ(curves.evaluations().size(), 2u);
}

TEST(Curves, MetricsAreRecordedByName) {
  const EventFolder folder;
  fs::create_directory(folder.path() / "digits");
  {
    Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
    JobStatus status = status_at(100, folder.path());
    status.loss = 0.5;
    status.metrics = {{"accuracy", 0.75}, {"mae", std::numeric_limits<double>::infinity()}};
    status.evaluation = EvaluationStatus{
        .step = Step(90), .loss = 0.25, .metrics = {{"top_5", 0.875}, {"recall", std::nan("")}}, .examples = 10};
    curves.look(kStart, kWall, status);
  }
  EXPECT_EQ(hexadecimal(folder.bytes("digits/events")),
            hexadecimal(version_record(kWall) + restart_record(kWall, 100) +
                        scalars_record(kWall, 100,
                                       {{"train/loss", 0.5}, {"train/accuracy", 0.75}, {"train/learning_rate", 0.5}}) +
                        scalars_record(kWall, 90, {{"evaluation/loss", 0.25}, {"evaluation/top_5", 0.875}})));
}

TEST(Curves, AnotherJobClearsThem) {
  Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
  curves.look(kStart, kWall, status_at(100));
  JobStatus next = status_at(5);
  next.job = JobId(2);
  curves.look(kStart + 1s, kWall, next);
  EXPECT_EQ(steps_of(curves), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(curves.job(), JobId(2));
}

TEST(Curves, FolderThatCannotBeWrittenIsReportedOnceAndTheCurveGoesOn) {
  const EventFolder folder;
  std::mutex mutex;
  std::vector<std::string> told;
  {
    Curves curves([&](const std::string& why) {
      const std::lock_guard lock(mutex);
      told.push_back(why);
    });
    for (int i = 1; i <= 10; ++i)
      curves.look(kStart + i * 1s, kWall, status_at(static_cast<std::uint64_t>(i), folder.path() / "away"));
    EXPECT_EQ(curves.points().size(), 10u);
  }
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], testing::HasSubstr("away/digits/events"));
}

TEST(Curves, FileIsClosedWhenTheJobHasEnded) {
  const EventFolder folder;
  fs::create_directory(folder.path() / "digits");
  Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
  JobStatus status = status_at(100, folder.path());
  curves.look(kStart, kWall, status);
  while (!folder.is_held()) std::this_thread::yield();
  status.state = JobState::kFailed;
  curves.look(kStart + 1s, kWall, status);
  while (folder.is_held()) std::this_thread::yield();
}

TEST(StatusPage, NeverShowsAnotherJobsCurve) {
  Curves curves([](const std::string& why) { ADD_FAILURE() << why; });
  curves.look(kStart, kWall, status_at(100));
  const auto points_with = [&curves](const nlohmann::json& job) {
    return page_state("c", job, curves, {})["curve"].size();
  };
  EXPECT_EQ(points_with({{"id", 1}}), 1u);
  EXPECT_EQ(points_with({{"id", 2}}), 0u);
  EXPECT_EQ(points_with({{"id", nullptr}}), 0u);
}

// The first job's folder can't be written, and the thread that finds this hangs.
TEST(Curves, FolderThatHangsHoldsNoOtherJob) {
  const EventFolder folder;
  std::atomic<bool> hangs = false;
  std::promise<void> let_go;
  Curves curves([&](const std::string&) {
    if (!hangs.exchange(true)) let_go.get_future().wait();
  });
  curves.look(kStart, kWall, status_at(1, folder.path() / "none"));
  while (!hangs) std::this_thread::yield();
  fs::create_directories(folder.path() / "digits");
  JobStatus next = status_at(1, folder.path());
  next.job = JobId(2);
  curves.look(kStart + 1s, kWall, next);
  while (!fs::exists(folder.path() / "digits/events")) std::this_thread::yield();
  let_go.set_value();
}

}  // namespace
}  // namespace disttrain::chiefd
