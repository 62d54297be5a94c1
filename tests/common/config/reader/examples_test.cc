// The examples in etc/ load, and etc/cluster.toml and etc/job.toml show every key with its default.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "common/config/reader/keys.h"
#include "common/config/reader/reader.h"

namespace disttrain::config {
namespace {

const std::string kEtc = DISTTRAIN_SOURCE_DIR "/etc/";

std::string text_of_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Examples, ClusterFileEqualsTheDefaults) {
  auto cluster = read_cluster(kEtc + "cluster.toml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  ClusterConfig defaults;
  defaults.ps.emplace_back().address = "127.0.0.1:7110";
  defaults.workers.emplace_back().address = "127.0.0.1:7120";
  EXPECT_EQ(cluster_toml(*cluster), cluster_toml(defaults));
}

TEST(Examples, ClusterFileShowsEveryKeyThatWorks) {
  const auto tree =
      parse_toml(std::make_shared<const TomlSource>(TomlSource{"cluster.toml", text_of_file(kEtc + "cluster.toml")}));
  ASSERT_TRUE(tree) << tree.error().what;
  ClusterConfig cluster = read_cluster(kEtc + "cluster.toml").value();
  // write_table() writes every key that the reader knows. etc/cluster.toml must have the same keys in the same order.
  std::vector<std::string> expected;
  std::vector<std::string> shown;
  const auto collect = [](const TomlValue::Table& sections, std::vector<std::string>& names) {
    for (const TomlEntry& section : sections) {
      const auto* list = section.value.as<TomlValue::Array>();
      if (list != nullptr && list->empty()) continue;  // [[evaluator]] is optional, and the file only explains it
      const TomlValue& keys = list != nullptr ? list->at(0) : section.value;
      for (const TomlEntry& key : *keys.as<TomlValue::Table>()) names.push_back(section.key + "." + key.key);
    }
  };
  collect(write_table(cluster_keys(cluster)), expected);
  collect(*tree->as<TomlValue::Table>(), shown);
  EXPECT_EQ(shown, expected);
}

// "train.optimizer.rule" -> "\"sgd\"".
void collect_values(const TomlValue::Table& table, const std::string& path,
                    std::map<std::string, std::string>& values) {
  for (const TomlEntry& entry : table) {
    const auto* inner = entry.value.as<TomlValue::Table>();
    if (inner != nullptr && !inner->empty())
      collect_values(*inner, path + entry.key + ".", values);
    else
      values[path + entry.key] = to_toml(entry.value);
  }
}

// Keys without a default, as in etc/job.toml.
JobConfig job_of_defaults() {
  JobConfig job;
  job.job.name = "job";
  job.model.builtin = "mlp";
  job.model.layers = {784, 100, 10};
  job.data.path = "../tests/data/mnist-mini";
  job.data.files = "train-images-idx3-ubyte*";
  job.train.batch_size = 50;
  job.train.epochs = 15;
  return job;
}

TEST(Examples, JobFileEqualsTheDefaults) {
  auto job = read_job_file(kEtc + "job.toml", {});
  ASSERT_TRUE(job) << job.error().message;
  JobConfig defaults = job_of_defaults();
  EXPECT_TRUE(std::ifstream(job->config.data.path + "/train-images-idx3-ubyte.gz").good());
  defaults.data.path = job->config.data.path;
  EXPECT_EQ(job_toml(job->config), job_toml(defaults));
}

TEST(Examples, JobFileShowsEveryKeyThatWorksWithItsDefault) {
  // In the file, some keys stand behind a "#", because they apply only if another key has another value. The test
  // includes these keys.
  const std::string text =
      std::regex_replace(text_of_file(kEtc + "job.toml"), std::regex("\n# ([a-z0-9_]+ = )"), "\n$1");
  const auto tree = parse_toml(std::make_shared<const TomlSource>(TomlSource{"job.toml", text}));
  ASSERT_TRUE(tree) << tree.error().what;
  JobConfig defaults = job_of_defaults();
  std::map<std::string, std::string> expected;
  std::map<std::string, std::string> shown;
  collect_values(write_table(job_keys(defaults)), "", expected);
  for (const char* key : {"checkpoint.init_map", "model.metrics"})
    expected[key] = "{}";  // the writer leaves this key out if it is empty
  // The writer leaves these keys out beside model.builtin.
  expected["model.program"] = expected["model.folder"] = "\"\"";
  expected["model.trainer"] = "[]";
  expected["data.missing"] = "[]";  // it needs [data.columns], whose columns have no defaults
  expected["data.tokenizer"] = expected["data.bucket_by"] =
      "\"\"";  // the writer leaves these keys out if they are empty
  expected["model.start_timeout"] = "\"10m\"";
  EXPECT_EQ(JobConfig().model.start_timeout, std::chrono::minutes(10));
  collect_values(*tree->as<TomlValue::Table>(), "", shown);
  EXPECT_EQ(shown, expected);
}

TEST(Examples, EveryKeyOfAJobIsExplained) {
  std::istringstream lines(text_of_file(kEtc + "job.toml"));
  for (std::string line; std::getline(lines, line);) {
    const bool is_key = std::regex_search(line, std::regex("^(# )?[a-z0-9_]+ = "));
    EXPECT_TRUE(!is_key || std::regex_search(line, std::regex("[^ ] +# [^ ]"))) << line;
  }
}

class ExampleJob : public testing::TestWithParam<const char*> {};

TEST_P(ExampleJob, Loads) {
  auto job = read_job_file(kEtc + "jobs/" + GetParam() + ".toml", {});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->config.job.name, GetParam());
  EXPECT_FALSE(job->config.evaluate.files.empty());
}

INSTANTIATE_TEST_SUITE_P(Each, ExampleJob, testing::Values("mnist-quick", "mnist-sigmoid", "mnist-cnn"),
                         [](const auto& job) {
                           std::string name = job.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST(Examples, QuickJobUsesBothPsAndTheDigitsOfTheSource) {
  const JobConfig job = read_job_file(kEtc + "jobs/mnist-quick.toml", {}).value().config;
  EXPECT_EQ(job.job.shards, 2u);
  EXPECT_TRUE(std::ifstream(job.data.path + "/train-images-idx3-ubyte.gz").good());
}

TEST(Examples, SigmoidJobIsTheClassicExperiment) {
  const JobConfig job = read_job_file(kEtc + "jobs/mnist-sigmoid.toml", {}).value().config;
  EXPECT_EQ(job.model.layers, (std::vector<std::uint32_t>{784, 100, 10}));
  EXPECT_EQ(job.model.activation, Activation::kSigmoid);
  EXPECT_EQ(job.model.initializer, (Initializer{InitializerKind::kNormal, 1.0}));
  EXPECT_EQ(job.data.records, (std::array<std::uint64_t, 2>{0, 55000}));
  EXPECT_EQ(job.data.sharding, Sharding::kNone);
  EXPECT_DOUBLE_EQ(job.data.scale, 1.0 / 255.0);
  EXPECT_EQ(job.train.mode, Mode::kAsync);
  EXPECT_EQ(job.train.epochs, 20u);
  EXPECT_EQ(job.train.batch_size, 100u);
  EXPECT_EQ(job.train.optimizer.rule, Rule::kSgd);
  EXPECT_DOUBLE_EQ(job.train.optimizer.learning_rate, 0.001);
}

}  // namespace
}  // namespace disttrain::config
