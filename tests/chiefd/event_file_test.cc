#include "chiefd/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "chiefd/progress.h"
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::int64_t kWall = 1'700'000'000'500'000'000;

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

class Folder {
 public:
  Folder() {
    std::string path = testing::TempDir() + "disttrain-events-XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

  // All that the files of the folder hold, in the order of their names.
  std::string bytes(const std::string& in) const {
    std::vector<fs::path> files(fs::directory_iterator(path_ / in), fs::directory_iterator());
    std::sort(files.begin(), files.end());
    std::string bytes;
    for (const fs::path& file : files) {
      std::ifstream stream(file, std::ios::binary);
      bytes += std::string(std::istreambuf_iterator<char>(stream), {});
    }
    return bytes;
  }

 private:
  fs::path path_;
};

// Within its life, no file of this process may be longer.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit few{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &few);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &old_); }
  FullDisk(const FullDisk&) = delete;

 private:
  rlimit old_{};
};

// As written by the tensorboard package 2.20.0 of the same messages.
TEST(EventRecords, AreTensorBoardsBytes) {
  EXPECT_EQ(hexadecimal(version_record(kWall)),
            "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
  EXPECT_EQ(
      hexadecimal(scalars_record(kWall, 300, {{"train/loss", 0.25}, {"a", 1.0}})),
      "2b00000000000000861bc34b0900002040fc54d94110ac022a1d0a110a0a747261696e2f6c6f7373150000803e0a080a01611500008"
      "03f71c5d18e");
  EXPECT_EQ(hexadecimal(restart_record(kWall, 121)), "0f000000000000006d532b090900002040fc54d94110793a0208014cd8a64e");
}

TEST(EventFile, FilesOfOneSecondAreSeveral) {
  const Folder folder;
  const std::string events = folder.path() / "events";
  {
    Result<EventFile> first = EventFile::create(events, kWall);
    Result<EventFile> second = EventFile::create(events, kWall);
    ASSERT_TRUE(first && second);
    ASSERT_TRUE(first->append("a"));
    ASSERT_TRUE(second->append("b"));
  }
  const std::string version = version_record(kWall);
  EXPECT_EQ(folder.bytes("events"), version + "a" + version + "b");
}

TEST(EventFile, FolderWhoseParentIsMissingIsNotMade) {
  const Folder folder;
  EXPECT_FALSE(EventFile::create(folder.path() / "job" / "events", kWall));
  EXPECT_FALSE(fs::exists(folder.path() / "job"));
}

TEST(EventFile, FullDiskIsAnError) {
  const Folder folder;
  Result<EventFile> file = EventFile::create(folder.path() / "events", kWall);
  ASSERT_TRUE(file);
  const auto append = [&file](std::size_t bytes) {
    const FullDisk full(60);
    return file->append(std::string(bytes, 'x'));
  };
  const Status whole = append(10);
  const Status half = append(100);
  const Status none = append(1);
  EXPECT_TRUE(whole);
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message, testing::HasSubstr("disk is full"));
  EXPECT_FALSE(none);
}

TEST(EventFile, FullDiskLeavesNoEmptyFile) {
  const Folder folder;
  const FullDisk full(10);
  EXPECT_FALSE(EventFile::create(folder.path() / "events", kWall));
  EXPECT_TRUE(fs::is_empty(folder.path() / "events"));
}

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

std::vector<std::uint64_t> steps_of(const Progress& progress) {
  std::vector<std::uint64_t> steps;
  for (const ProgressPoint& point : progress.points()) steps.push_back(point.step);
  return steps;
}

const Instant kStart{1h};

TEST(Progress, PointsHaveTheSpeedSinceTheLookBefore) {
  Progress progress([](const std::string& why) { ADD_FAILURE() << why; });
  progress.look(kStart, kWall, status_at(500));
  progress.look(kStart + 2s, kWall, status_at(600));
  ASSERT_EQ(steps_of(progress), (std::vector<std::uint64_t>{500, 600}));
  EXPECT_EQ(progress.points()[0].steps_per_second, std::nullopt);  // it may have begun long ago
  EXPECT_DOUBLE_EQ(progress.points()[1].steps_per_second.value(), 50);
  EXPECT_DOUBLE_EQ(progress.points()[1].examples_per_second.value(), 500);
}

TEST(Progress, StandstillAddsNoPoint) {
  Progress progress([](const std::string& why) { ADD_FAILURE() << why; });
  for (int i = 0; i < 5; ++i) progress.look(kStart + i * 1s, kWall, status_at(7));
  EXPECT_EQ(steps_of(progress), (std::vector<std::uint64_t>{7}));
}

TEST(Progress, IsDueOftenAtFirstAndEachSecondLater) {
  Progress progress([](const std::string& why) { ADD_FAILURE() << why; });
  progress.look(kStart, kWall, status_at(1));
  EXPECT_FALSE(progress.is_due(kStart + 99ms));
  EXPECT_TRUE(progress.is_due(kStart + 100ms));
  progress.look(kStart + 1h, kWall, status_at(2));
  EXPECT_FALSE(progress.is_due(kStart + 1h + 999ms));
  EXPECT_TRUE(progress.is_due(kStart + 1h + 1s));
}

TEST(Progress, ManyPointsAreThinnedOutAndSpanTheWholeJob) {
  Progress progress([](const std::string& why) { ADD_FAILURE() << why; });
  constexpr std::uint64_t kMany = 10 * Progress::kMaxPoints;
  for (std::uint64_t step = 1; step <= kMany; ++step)
    progress.look(kStart + static_cast<int>(step) * 1s, kWall, status_at(step));
  EXPECT_LE(progress.points().size(), Progress::kMaxPoints);
  EXPECT_GE(progress.points().size(), Progress::kMaxPoints / 2);
  EXPECT_LT(progress.points().front().step, 100u);
  EXPECT_EQ(progress.points().back().step, kMany);
}

// Shown the job of a core, and its events.
class ProgressOfAJob : public RecoveryTest {
 protected:
  ProgressOfAJob() { fs::create_directory(folder_.path() / "a"); }

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
  void look(JobId job) { progress_->look(now_, kWall, status(job)); }
  void hear(const std::string& kind) {
    for (const EventRecord& event : journal_.events)
      if (event.kind == kind) return progress_->hear(event);
    ADD_FAILURE() << "no " << kind;
  }
  std::string written() {
    progress_.reset();
    return folder_.bytes("a/events");
  }
  static std::string record_of(std::uint64_t step, double learning_rate, double steps_per_second = 0.0) {
    std::vector<Scalar> scalars{{"train/loss", 1.0 / static_cast<double>(step)},
                                {"train/learning_rate", learning_rate}};
    if (steps_per_second > 0.0) scalars.push_back({"train/steps_per_second", steps_per_second});
    if (steps_per_second > 0.0) scalars.push_back({"train/examples_per_second", steps_per_second * 10});
    return scalars_record(kWall, step, scalars);
  }

  const Folder folder_;
  std::optional<Progress> progress_{[](const std::string& why) { ADD_FAILURE() << why; }};
};

TEST_F(ProgressOfAJob, RollbackTakesBackWhatComesAfterItHoweverSoonTheJobIsBeyond) {
  const JobId job = train(with_events());
  const double rate = status(job).learning_rate;
  report(100);
  look(job);
  now_ += 1s;
  report(200);
  look(job);
  newest_ = restore_point(120);
  kill(ps(0));
  pacer_ = newest_->pacer;
  restart(ps(0));
  hear("rolled_back");
  EXPECT_EQ(steps_of(*progress_), (std::vector<std::uint64_t>{100}));
  now_ += 1s;
  report(250);
  look(job);
  EXPECT_EQ(steps_of(*progress_), (std::vector<std::uint64_t>{100, 250}));
  const std::int64_t rolled_back_at = now_.time_since_epoch().count() - Duration(1s).count();
  EXPECT_EQ(hexadecimal(written()),
            hexadecimal(version_record(kWall) + restart_record(kWall, 100) + record_of(100, rate) +
                        record_of(200, rate, 100) + restart_record(rolled_back_at, 121) + record_of(250, rate)));
}

TEST_F(ProgressOfAJob, NewChiefShowsNothingBeforeItKnowsWhereTheJobIs) {
  const JobId job = train(with_events());
  const double rate = status(job).learning_rate;
  journal_.jobs.at(job).checkpoint = CheckpointRecord{job, Generation(1), Step(20), folder_.path() / "a/step"};
  report(5000);
  restart_chief();
  look(job);
  hello_again(ps(0));
  hello_again(ps(1));
  now_ += 1s;
  look(job);
  EXPECT_EQ(steps_of(*progress_), (std::vector<std::uint64_t>{}));
  hello_again(worker(0));
  hello_again(worker(1));
  look(job);
  now_ += 1s;
  report(5100);
  look(job);
  EXPECT_EQ(steps_of(*progress_), (std::vector<std::uint64_t>{5000, 5100}));
  EXPECT_EQ(hexadecimal(written()), hexadecimal(version_record(kWall) + restart_record(kWall, 5000) +
                                                record_of(5000, rate) + record_of(5100, rate, 100)));
}

TEST_F(ProgressOfAJob, RollbackBeforeTheFirstLookCounts) {
  const JobId job = train(with_events());
  newest_ = restore_point(120);
  kill(ps(0));
  pacer_ = newest_->pacer;
  restart(ps(0));
  hear("rolled_back");
  report(250);
  look(job);
  EXPECT_EQ(steps_of(*progress_), (std::vector<std::uint64_t>{250}));
  EXPECT_THAT(written(), testing::StartsWith(version_record(now_.time_since_epoch().count()) +
                                             restart_record(now_.time_since_epoch().count(), 121)));
}

TEST(Progress, RestoredJobKeepsWhatWasRecordedOfItsFirstStep) {
  const Folder folder;
  fs::create_directory(folder.path() / "digits");
  {
    Progress progress([](const std::string& why) { ADD_FAILURE() << why; });
    JobStatus status = status_at(100, folder.path());
    status.part = JobPart::kInit;
    progress.look(kStart, kWall, status);
    progress.hear(EventRecord{kWall, JobId(1), "restored", "", 100, "begins at step 100"});
    progress.look(kStart + 1s, kWall, status_at(100, folder.path()));
    progress.look(kStart + 2s, kWall, status_at(101, folder.path()));
    EXPECT_EQ(steps_of(progress), (std::vector<std::uint64_t>{101}));
  }
  EXPECT_TRUE(folder.bytes("digits/events").starts_with(version_record(kWall) + restart_record(kWall, 101)));
}

TEST(Progress, EachEvaluationIsRecordedOnce) {
  Progress progress([](const std::string& why) { ADD_FAILURE() << why; });
  JobStatus status = status_at(100);
  status.evaluation = EvaluationStatus{.step = Step(90), .loss = 0.5, .accuracy = 0.9, .examples = 10};
  progress.look(kStart, kWall, status);
  progress.look(kStart + 1s, kWall, status);
  EXPECT_EQ(progress.evaluations().size(), 1u);
  status.evaluation->final = true;
  status.evaluation->step = Step(100);
  progress.look(kStart + 2s, kWall, status);
  EXPECT_EQ(progress.evaluations().size(), 2u);
}

TEST(Progress, AnotherJobBeginsAnew) {
  Progress progress([](const std::string& why) { ADD_FAILURE() << why; });
  progress.look(kStart, kWall, status_at(100));
  JobStatus next = status_at(5);
  next.job = JobId(2);
  progress.look(kStart + 1s, kWall, next);
  EXPECT_EQ(steps_of(progress), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(progress.job(), JobId(2));
}

TEST(EventWriter, FolderThatIsMovedAwayIsMadeAnew) {
  const Folder folder;
  const std::string events = folder.path() / "events";
  {
    EventWriter writer([](const std::string& why) { ADD_FAILURE() << why; });
    writer.write(events, kWall, "a");
    while (!fs::exists(events) || folder.bytes("events").back() != 'a') std::this_thread::yield();
    fs::rename(events, folder.path() / "away");
    writer.write(events, kWall, "b");
  }
  EXPECT_EQ(folder.bytes("away"), version_record(kWall) + "a");
  EXPECT_EQ(folder.bytes("events"), version_record(kWall) + "b");
}

// What failed is tried again, and at last when the writer ends.
TEST(EventWriter, NothingIsLostByADiskThatWasFull) {
  const Folder folder;
  std::atomic<int> told = 0;
  {
    EventWriter writer([&told](const std::string&) { ++told; });
    {
      const FullDisk full(10);
      for (const char* record : {"a", "b", "c"}) writer.write(folder.path() / "events", kWall, record);
      while (told == 0) std::this_thread::yield();
    }
    writer.write(folder.path() / "events", kWall, "d");
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(folder.bytes("events"), version_record(kWall) + "abcd");
}

TEST(EventWriter, FullDiskIsTriedSeldomHoweverManyRecordsThereAre) {
  const Folder folder;
  fs::create_directory(folder.path() / "events");
  const int watch = ::inotify_init1(IN_NONBLOCK);
  ASSERT_GE(::inotify_add_watch(watch, (folder.path() / "events").c_str(), IN_CREATE), 0);
  std::atomic<int> told = 0;
  {
    const FullDisk full(10);
    EventWriter writer([&told](const std::string&) { ++told; });
    for (int i = 0; i < 1000; ++i) writer.write(folder.path() / "events", kWall, "x");
    while (told == 0) std::this_thread::yield();
  }
  int files = 0;
  std::array<char, 1024> events{};
  for (ssize_t bytes = 0; (bytes = ::read(watch, events.data(), events.size())) > 0;)
    for (ssize_t at = 0; at < bytes; ++files) {
      inotify_event event{};
      std::memcpy(&event, events.data() + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  ::close(watch);
  EXPECT_GE(files, 1);
  EXPECT_LT(files, 10);
}

TEST(EventWriter, AnotherFolderDoesNotWaitForOneThatCannotBeWritten) {
  const Folder folder;
  std::atomic<int> told = 0;
  EventWriter writer([&told](const std::string&) { ++told; });
  for (int i = 0; i < 1000; ++i) writer.write(folder.path() / "away/events", kWall, "x");
  while (told == 0) std::this_thread::yield();
  writer.write(folder.path() / "events", kWall, "a");
  const std::string whole = version_record(kWall) + "a";
  while (!fs::exists(folder.path() / "events") || folder.bytes("events") != whole) std::this_thread::yield();
}

TEST(Progress, FolderThatCannotBeWrittenIsToldOnceAndTheCurveGoesOn) {
  const Folder folder;
  std::mutex mutex;
  std::vector<std::string> told;
  {
    Progress progress([&](const std::string& why) {
      const std::lock_guard lock(mutex);
      told.push_back(why);
    });
    for (int i = 1; i <= 10; ++i)
      progress.look(kStart + i * 1s, kWall, status_at(static_cast<std::uint64_t>(i), folder.path() / "away"));
    EXPECT_EQ(progress.points().size(), 10u);
  }
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], testing::HasSubstr("away/digits/events"));
}

}  // namespace
}  // namespace disttrain::chiefd
