// Job files on the disk: paths, values that --set gives, and files that can't be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/config/reader/reader.h"
#include "tests/common/config/reader/texts.h"

namespace disttrain::config {
namespace {

using testing::HasSubstr;

// A folder with a job file that names its data by a relative path.
class JobFileOnDisk : public testing::Test {
 protected:
  JobFileOnDisk() {
    folder_ = std::filesystem::temp_directory_path() / ("disttrain-config-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(path()) << replaced(kJob, "/data", "../digits");
  }
  ~JobFileOnDisk() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "job.toml").string(); }
  JobFile read(const std::vector<std::string>& sets) {
    auto file = read_job_file(path(), sets);
    EXPECT_TRUE(file) << file.error().message;
    return file.value();
  }
  Error error_of(const std::vector<std::string>& sets) {
    auto file = read_job_file(path(), sets);
    EXPECT_FALSE(file);
    return file ? Error{} : file.error();
  }

  std::filesystem::path folder_;
};

TEST_F(JobFileOnDisk, PathsOfTheFileAreFromItsFolderAndThoseOfSetFromHere) {
  EXPECT_EQ(read({}).config.data.path, (folder_.parent_path() / "digits").string());
  EXPECT_EQ(read({"data.path=here"}).config.data.path, (std::filesystem::current_path() / "here").string());
  EXPECT_EQ(read({"data.path=/there"}).config.data.path, "/there");
}

TEST_F(JobFileOnDisk, DefaultsOfTheCallerApplyOnlyToKeysThatNobodyGives) {
  const std::vector<std::string> defaults = {"job.ps_timeout=2m", "train.batch_size=7"};
  const auto plain = read_job_file(path(), {}, defaults);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->config.job.ps_timeout, std::chrono::minutes(2));
  EXPECT_EQ(plain->config.train.batch_size, 10u) << "the file gives it";
  EXPECT_EQ(read_job(plain->toml)->job.ps_timeout, std::chrono::minutes(2)) << "the text that is submitted has it";
  const auto set = read_job_file(path(), {"job.ps_timeout=0s"}, defaults);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->config.job.ps_timeout, Duration::zero());
}

TEST_F(JobFileOnDisk, SetReplacesAndAddsKeysInOrder) {
  const JobFile file =
      read({"train.batch_size=5", "train.batch_size=6", "train.optimizer.rule=adam",
            "train.optimizer.learning_rate=1e-3", "data.records=[0, 100]", "job.name=other", "evaluate.files=t*"});
  EXPECT_EQ(file.config.train.batch_size, 6u);
  EXPECT_EQ(file.config.train.optimizer.rule, Rule::kAdam);
  EXPECT_DOUBLE_EQ(file.config.train.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(file.config.data.records[1], 100u);
  EXPECT_EQ(file.config.job.name, "other");
  EXPECT_EQ(file.config.evaluate.files, "t*");
}

TEST_F(JobFileOnDisk, MergedTextReadsBackToTheSame) {
  const JobFile file = read({"train.optimizer.rule=adam", "data.labels=a\"b\\c d", "model.initializer=normal(0.1)"});
  auto again = read_job(file.toml);
  ASSERT_TRUE(again) << again.error().message << file.toml;
  EXPECT_EQ(job_toml(*again), job_toml(file.config));
  EXPECT_EQ(again->data.labels, "a\"b\\c d");
}

TEST_F(JobFileOnDisk, MistakeInASetNamesTheSet) {
  const Error error = error_of({"train.mode=asink"});
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr("--set train.mode=asink: train.mode is \"asink\"; expected"));
  EXPECT_THAT(error_of({"train.mod=sync"}).message, HasSubstr("did you mean \"mode\"?"));
  EXPECT_THAT(error_of({"train.batch_size.x=1"}).message, HasSubstr("isn't a table"));
}

TEST_F(JobFileOnDisk, SetWithoutAKeyIsAUsageError) {
  for (const char* set : {"train.mode", "mode=sync", "=3", "train.=3", ""})
    EXPECT_EQ(error_of({set}).code, ErrorCode::kUsage) << set;
}

TEST_F(JobFileOnDisk, SetOfThousandsOfPartsIsAUsageError) {
  std::string deep = "a";
  for (int i = 0; i < 60'000; ++i) deep += ".a";
  EXPECT_EQ(error_of({deep + "=1"}).code, ErrorCode::kUsage);
  EXPECT_LT(error_of({deep + "=1"}).message.size(), 1000u);
}

TEST_F(JobFileOnDisk, ControlCharacterInASetIsRefused) {
  EXPECT_THAT(error_of({"data.labels=a\nb"}).message, HasSubstr("data.labels has a control character at byte 2"));
}

TEST_F(JobFileOnDisk, AFolderIsNoInput) {
  auto file = read_job_file(folder_.string(), {});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kNoInput);
  EXPECT_THAT(file.error().message, HasSubstr("can't be read: it is a folder; expected a TOML file"));
}

// Opening a pipe would wait for its writer.
TEST_F(JobFileOnDisk, APipeIsNoInput) {
  const std::string pipe = (folder_ / "pipe.toml").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const Error& error : {read_job_file(pipe, {}).error(), read_cluster(pipe).error(), kind_of_file(pipe).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kNoInput);
    EXPECT_THAT(error.message, HasSubstr("can't be read: it is a pipe; expected a TOML file"));
  }
}

TEST_F(JobFileOnDisk, JobThatIsTooLargeToBeSubmittedIsRefused) {
  std::string names;
  for (int i = 0; i < 100; ++i) names += "theirs" + std::to_string(i) + " = \"" + std::string(3000, 'x') + "\", ";
  EXPECT_THAT(error_of({"checkpoint.init_from=/there", "checkpoint.init_map={ " + names + "last = \"y\" }"}).message,
              HasSubstr("bytes of TOML when it is submitted; expected at most 262144"));
}

TEST_F(JobFileOnDisk, TextThatNoMessageCarriesIsRefused) {
  EXPECT_THAT(error_of({"data.labels=" + std::string(5000, 'x')}).message,
              HasSubstr("expected a string of at most 4096 bytes"));
}

TEST_F(JobFileOnDisk, LargeFileIsRefused) {
  std::ofstream(path(), std::ios::app) << "#" << std::string(1 << 20, ' ');
  EXPECT_EQ(error_of({}).code, ErrorCode::kConfig);
  EXPECT_THAT(error_of({}).message, HasSubstr("is larger than 1048576 bytes"));
}

TEST_F(JobFileOnDisk, KindIsToldByTheSections) {
  EXPECT_EQ(kind_of_file(path()).value(), FileKind::kJob);
  std::ofstream(folder_ / "cluster.toml") << kCluster;
  EXPECT_EQ(kind_of_file((folder_ / "cluster.toml").string()).value(), FileKind::kCluster);
  std::ofstream(folder_ / "neither.toml") << "a = 1\n";
  EXPECT_EQ(kind_of_file((folder_ / "neither.toml").string()).error().code, ErrorCode::kConfig);
}

TEST(Sets, ClusterKeysAreToldFromJobKeys) {
  EXPECT_TRUE(is_cluster_key("transport.credits=8"));
  EXPECT_TRUE(is_cluster_key("heartbeat.timeout=2s"));
  EXPECT_FALSE(is_cluster_key("train.mode=sync"));
  EXPECT_FALSE(is_cluster_key("job.name=x"));
}

}  // namespace
}  // namespace disttrain::config
