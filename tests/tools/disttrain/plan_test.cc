// disttrain plan: the notes that it prints besides numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/disttrain/json.h"
#include "tools/disttrain/options.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A job "small" in a folder of its own.
class PlanTest : public testing::Test {
 protected:
  PlanTest() {
    std::string pattern = (fs::temp_directory_path() / "disttrain-plan-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::ofstream(folder_ / "job.toml") << "[job]\nname = \"small\"\n"
                                           "[model]\nbuiltin = \"mlp\"\nlayers = [4, 3]\n"
                                           "[data]\npath = \".\"\nfiles = \"images\"\nlabels = \"labels\"\n"
                                           "[train]\nmode = \"async\"\nbatch_size = 5\nepochs = 1\n"
                                           "optimizer = { rule = \"sgd\", learning_rate = 0.1 }\n";
  }
  ~PlanTest() override { fs::remove_all(folder_); }

  // The notes that `plan` prints about a job with this checkpoint.directory.
  std::vector<std::string> notes_with(const std::string& directory) {
    const fs::path job = folder_ / "with.toml";
    fs::copy_file(folder_ / "job.toml", job, fs::copy_options::overwrite_existing);
    std::ofstream(job, std::ios::app) << "[checkpoint]\ndirectory = \"" << directory << "\"\nevery_steps = 10\n";
    PlanOptions options;
    options.job = job.string();
    options.ps = 1;
    options.json = true;
    testing::internal::CaptureStdout();
    const int code = plan(options);
    const Json planned = Json::parse(testing::internal::GetCapturedStdout(), nullptr, false);
    EXPECT_EQ(code, 0) << "the folder may be fine on the hosts that use it";
    if (!planned.is_object()) return {"no plan"};
    return planned.value("notes", std::vector<std::string>());
  }

  fs::path folder_;
};

// Root may write everywhere. access() checks the real user, so only the real user is changed.
class NotRoot {
 public:
  NotRoot() { EXPECT_TRUE(::getuid() != 0 || ::setresuid(kNobody, kUnchanged, kUnchanged) == 0); }
  ~NotRoot() { EXPECT_EQ(::setresuid(before_, kUnchanged, kUnchanged), 0); }
  NotRoot(const NotRoot&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  static constexpr uid_t kUnchanged = static_cast<uid_t>(-1);
  const uid_t before_ = ::getuid();
};

constexpr const char* kOfDirectory = "checkpoint.directory";

TEST_F(PlanTest, DirectoryThatIsThereIsNotNoted) {
  fs::create_directory(folder_ / "checkpoints");
  EXPECT_THAT(notes_with((folder_ / "checkpoints").string()), Not(Contains(StartsWith(kOfDirectory))));
  EXPECT_THAT(notes_with("checkpoints"), Not(Contains(StartsWith(kOfDirectory)))) << "from the job file's folder";
  fs::create_directory(folder_ / "checkpoints/small");
  EXPECT_THAT(notes_with("checkpoints"), Not(Contains(StartsWith(kOfDirectory))));
  EXPECT_THAT(notes_with(""), Not(Contains(StartsWith(kOfDirectory))));
}

TEST_F(PlanTest, DirectoryThatIsNotThereIsNoted) {
  EXPECT_THAT(notes_with("/nonexist"),
              Contains("checkpoint.directory can't be used on this host: /nonexist doesn't "
                       "exist; on the hosts of the chief and of every ps, this path must be a folder "
                       "that they can write to"));
  EXPECT_THAT(notes_with("relative"),
              Contains(AllOf(StartsWith(kOfDirectory), HasSubstr((folder_ / "relative").string()))));
}

TEST_F(PlanTest, WhatIsNoFolderIsNoted) {
  EXPECT_THAT(notes_with("job.toml"), Contains(HasSubstr((folder_ / "job.toml").string() + " isn't a folder;")));
  std::ofstream(folder_ / "small") << "in the place of the job's folder";
  EXPECT_THAT(notes_with(folder_.string()), Contains(HasSubstr((folder_ / "small").string() + " isn't a folder;")));
}

TEST_F(PlanTest, FolderThatCannotBeWrittenIsNoted) {
  const fs::path of_job = folder_ / "checkpoints/small";
  fs::create_directories(of_job);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(of_job.c_str(), 0555), 0);
  const NotRoot another;
  EXPECT_THAT(notes_with("checkpoints"), Contains(HasSubstr(of_job.string() + " can't be written by this user: ")));
}

TEST_F(PlanTest, WithABandwidthPredictsTheTimeOfAStep) {
  PlanOptions options;
  options.job = (folder_ / "job.toml").string();
  options.ps = 1;
  options.workers = 1;
  options.bandwidth = "1G";
  options.latency = "100us";
  options.compute = "2ms";
  options.json = true;
  testing::internal::CaptureStdout();
  ASSERT_EQ(plan(options), 0);
  const Json planned = Json::parse(testing::internal::GetCapturedStdout(), nullptr, false);
  const Json& prediction = planned["prediction"];
  EXPECT_EQ(prediction["mode"], "async");
  EXPECT_EQ(prediction["workers"], 1);
  // The computation, two latencies, and some hundred bytes.
  EXPECT_NEAR(prediction["step"]["median"].get<double>(), 2e-3 + 2 * 100e-6 + 4e-6, 2e-6);
}

TEST_F(PlanTest, WithoutABandwidthPredictsNothing) {
  PlanOptions options;
  options.job = (folder_ / "job.toml").string();
  options.ps = 1;
  options.json = true;
  testing::internal::CaptureStdout();
  ASSERT_EQ(plan(options), 0);
  const Json planned = Json::parse(testing::internal::GetCapturedStdout(), nullptr, false);
  EXPECT_FALSE(planned.contains("prediction"));
}

TEST_F(PlanTest, SaysThatComputingIsNotCountedIfItsTimeIsNotGiven) {
  PlanOptions options;
  options.job = (folder_ / "job.toml").string();
  options.ps = 1;
  options.bandwidth = "10G";
  testing::internal::CaptureStdout();
  ASSERT_EQ(plan(options), 0);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, HasSubstr("with each task on a host of its own, 10Gbit/s and 50us:"));
  EXPECT_THAT(text, HasSubstr("a step takes "));
  EXPECT_THAT(text, HasSubstr("computing isn't counted"));
}

}  // namespace
}  // namespace disttrain::cli
