// Each mistake in a file gives one clear message with its place and the right code; all mistakes are reported at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/config/reader/reader.h"

namespace disttrain::config {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char kCluster[] = R"(
[[ps]]
address = "127.0.0.1:7110"
[[worker]]
address = "127.0.0.1:7120"
)";

const char kJob[] = R"(
[job]
name = "test"
[model]
builtin = "mlp"
layers = [4, 2]
[data]
path = "/data"
files = "train*"
[train]
batch_size = 10
steps = 100
)";

Error cluster_error(const std::string& text) {
  auto cluster = parse_cluster(text, "cluster.toml");
  EXPECT_FALSE(cluster.has_value()) << text;
  return cluster ? Error{} : cluster.error();
}

Error job_error(const std::string& text) {
  auto job = read_job(text);
  EXPECT_FALSE(job.has_value()) << text;
  return job ? Error{} : job.error();
}

// The text of kJob with more lines at its end. kJob ends with [train], so the lines belong to [train].
std::string job_with(const std::string& lines) {
  return kJob + lines + "\n";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(ClusterFile, MinimalFileHasTheDefaults) {
  auto cluster = parse_cluster(kCluster, "cluster.toml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->name, "disttrain");
  EXPECT_EQ(cluster->chief.address, "127.0.0.1:7100");
  EXPECT_EQ(cluster->workers.at(0).threads, 1u);
  EXPECT_EQ(cluster->heartbeat.timeout, 1s);
  EXPECT_EQ(cluster->transport.hello_timeout, 2s);
}

TEST(ClusterFile, EveryKeyIsRead) {
  auto cluster = parse_cluster(R"(
[cluster]
name = "mine"
[chief]
address = "[::1]:7100"
state_directory = "/tmp/x"
max_queued_jobs = 3
[[ps]]
address = "a:1"
shards = 2
memory = "8GiB"
cores = [0, 1]
[[ps]]
address = "a:2"
[[worker]]
address = "b:1"
threads = 4
cores = [2]
device = "pjrt:/opt/plugin.so"
[transport]
kind = "tcp"
credits = 8
max_connections = 10
hello_timeout = "500ms"
congestion_control = "cubic"
[heartbeat]
timeout = "1.5s"
[metrics]
listen = "0.0.0.0"
[log]
level = "debug"
format = "json"
rate = 5
)",
                               "cluster.toml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->name, "mine");
  EXPECT_EQ(cluster->chief.max_queued_jobs, 3u);
  ASSERT_EQ(cluster->ps.size(), 2u);
  EXPECT_EQ(cluster->ps[0].memory_bytes, std::uint64_t{8} << 30);
  EXPECT_EQ(cluster->ps[0].cores, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(cluster->ps[1].memory_bytes, 0u);
  EXPECT_EQ(cluster->workers.at(0).threads, 4u);
  EXPECT_EQ(cluster->workers.at(0).device, "pjrt:/opt/plugin.so");
  EXPECT_EQ(cluster->transport.credits, 8u);
  EXPECT_EQ(cluster->transport.congestion_control, "cubic");
  EXPECT_EQ(cluster->heartbeat.timeout, 1500ms);
  EXPECT_EQ(cluster->metrics.listen, "0.0.0.0");
  EXPECT_EQ(cluster->log.format, "json");
}

TEST(ClusterFile, MetricsAreServedAtAHostAtAnyPortOrNowhere) {
  for (const char* listen : {"", "0.0.0.0", "::1", "::", "host.example", "127.0.0.1:0", "[::1]:0"}) {
    const auto cluster = parse_cluster("[metrics]\nlisten = \"" + std::string(listen) + "\"" + kCluster, "x");
    ASSERT_TRUE(cluster) << cluster.error().message;
    EXPECT_EQ(cluster->metrics.listen, listen);
  }
  for (const char* listen : {":0", "host:1", "[::1]", "[::1]:1", "a b", "http://host", "[]:0"})
    EXPECT_FALSE(parse_cluster("[metrics]\nlisten = \"" + std::string(listen) + "\"" + kCluster, "x")) << listen;
}

TEST(ClusterFile, PortsOfMetricsCollideOnlyWhereTheyAreServed) {
  for (const char* listen : {"", "127.0.0.1:0"})
    for (const char* port : {"6110", "65535"})
      EXPECT_TRUE(parse_cluster("[metrics]\nlisten = \"" + std::string(listen) +
                                    "\"\n[chief]\naddress = \"127.0.0.1:" + port + "\"" + kCluster,
                                "x"))
          << listen;
}

TEST(ClusterFile, HashIsOfTheMeaningOnly) {
  const auto hash = [](const std::string& text) { return parse_cluster(text, "x").value().hash; };
  EXPECT_EQ(hash(kCluster), hash("# a comment\n[heartbeat]\ntimeout = \"1000ms\"\n" + std::string(kCluster)));
  EXPECT_NE(hash(kCluster), hash("[heartbeat]\ntimeout = \"2s\"\n" + std::string(kCluster)));
}

TEST(ClusterFile, UnknownKeySaysPlaceAndNearestKey) {
  const Error error = cluster_error(std::string(kCluster) + "[heartbeat]\ntimeuot = \"1s\"\n");
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message,
              HasSubstr("cluster.toml:7:1: heartbeat.timeuot is not a known key; did you mean \"timeout\"?"));
  EXPECT_THAT(error.message, HasSubstr("    7 | timeuot = \"1s\"\n      | ^"));
}

TEST(ClusterFile, KeyInTheWrongSectionSaysWhereItBelongs) {
  EXPECT_THAT(cluster_error("[heartbeat]\ncredits = 4\n" + std::string(kCluster)).message,
              HasSubstr("did you mean \"transport.credits\"?"));
}

struct Mistake {
  const char* name;
  std::string text;
  std::string message;
};

class ClusterMistake : public testing::TestWithParam<Mistake> {};

TEST_P(ClusterMistake, IsNamed) {
  const Error error = cluster_error(GetParam().text);
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Each, ClusterMistake,
    testing::Values(
        Mistake{"Syntax", "[chief\naddress = 3", "cluster.toml:1:7: isn't TOML"},
        Mistake{"DuplicateKey", "[log]\nrate = 1\nrate = 2", "isn't TOML"},
        Mistake{"WrongType", "[transport]\ncredits = \"4\"" + std::string(kCluster),
                "transport.credits is \"4\"; expected an integer from 1 to 64"},
        Mistake{"OutOfRange", "[transport]\ncredits = 65" + std::string(kCluster),
                "transport.credits is 65; expected an integer from 1 to 64"},
        Mistake{"DurationWithoutUnit", "[heartbeat]\ntimeout = 1" + std::string(kCluster),
                "heartbeat.timeout is 1; expected a duration from"},
        Mistake{"DurationOutOfRange", "[heartbeat]\ntimeout = \"2h\"" + std::string(kCluster),
                "expected a duration from \"100ms\" to \"1h\""},
        Mistake{"SizeWithoutUnit", "[[ps]]\naddress = \"a:1\"\nmemory = 100" + std::string(kCluster),
                "ps[0].memory is 100; expected \"auto\", or a size with a unit"},
        Mistake{"SectionIsNotATable", "log = 3\n" + std::string(kCluster), "log is 3; expected a table"},
        Mistake{"ListIsNotAList", "ps = 3\n[[worker]]\naddress = \"a:1\"", "ps is 3; expected a list of [[sections]]"},
        Mistake{"UnknownWord", "[log]\nlevel = \"inof\"" + std::string(kCluster),
                "expected \"debug\", \"info\", \"warn\" or \"error\"; did you mean \"info\"?"},
        Mistake{"AddressWithoutPort", "[chief]\naddress = \"host\"" + std::string(kCluster), "expected an address"},
        Mistake{"PortZero", "[chief]\naddress = \"host:0\"" + std::string(kCluster), "with a port from 1 to 65535"},
        Mistake{"PortTooLarge", "[chief]\naddress = \"host:65536\"" + std::string(kCluster),
                "with a port from 1 to 65535"},
        Mistake{"MissingAddress", "[[ps]]\nshards = 1" + std::string(kCluster), "ps[0].address is missing; expected"},
        Mistake{"NoPs", "[[worker]]\naddress = \"a:1\"", "there is no [[ps]] section; expected at least one"},
        Mistake{"NoWorkers", "[[ps]]\naddress = \"a:1\"", "there is no [[worker]] section; expected at least one"},
        Mistake{"OneAddressTwice", std::string(kCluster) + "[[worker]]\naddress = \"127.0.0.1:7110\"",
                "cluster.toml:7:11: worker[1].address is \"127.0.0.1:7110\", which is already the address of ps[0]"},
        Mistake{"LaterTransport", "[transport]\nkind = \"rdma\"" + std::string(kCluster),
                "transport.kind = \"rdma\" is not in this version"},
        Mistake{"LaterDevice", "[[worker]]\naddress = \"a:1\"\ndevice = \"cuda:0\"" + std::string(kCluster),
                "worker[0].device = \"cuda:0\" is not in this version"},
        Mistake{"UnknownDevice", "[[worker]]\naddress = \"a:1\"\ndevice = \"tpu\"" + std::string(kCluster),
                "worker[0].device is \"tpu\"; expected \"cpu\", or \"pjrt:\" and the absolute path of a PJRT plugin"},
        Mistake{"PluginWithoutAFullPath",
                "[[worker]]\naddress = \"a:1\"\ndevice = \"pjrt:plugin.so\"" + std::string(kCluster),
                "worker[0].device is \"pjrt:plugin.so\"; expected \"cpu\", or \"pjrt:\""},
        Mistake{"MetricsWithAPort", "[metrics]\nlisten = \"127.0.0.1:9100\"" + std::string(kCluster),
                "the port is the task's port + 1000"},
        Mistake{"MetricsBeyondTheLastPort", "[chief]\naddress = \"127.0.0.1:64536\"" + std::string(kCluster),
                "chief.address is \"127.0.0.1:64536\", so its metrics port would be 65536 (its own port + 1000), which "
                "doesn't exist; expected a port of at most 64535"},
        Mistake{"MetricsAtAnothersPort", "[chief]\naddress = \"127.0.0.1:6110\"" + std::string(kCluster),
                "where chief serves its metrics"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

TEST(ClusterFile, AllMistakesComeAtOnceInTheOrderOfTheFile) {
  const Error error = cluster_error("[transport]\ncredits = 0\nkidn = \"tcp\"\n[log]\nrate = -1\n");
  const std::size_t first = error.message.find("cluster.toml:2:");
  const std::size_t second = error.message.find("cluster.toml:3:");
  const std::size_t third = error.message.find("cluster.toml:5:");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos) << error.message;
  EXPECT_THAT(error.message, AllOf(HasSubstr("no [[ps]]"), HasSubstr("no [[worker]]")));
}

// A stranger may have written the file, and a job comes over the network. So error messages have a bounded length,
// however many mistakes there are.
TEST(ClusterFile, TwentyThousandWorkersAreRefusedInAFewLines) {
  std::string text = kCluster;
  for (int i = 0; i < 20'000; ++i) text += "[[worker]]\naddress = \"127.0.0.1:" + std::to_string(8000 + i) + "\"\n";
  const Error error = cluster_error(text);
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, AllOf(HasSubstr("there are 20001 [[worker]] sections; expected at most 1024"),
                                   HasSubstr("other problems")));
  EXPECT_LT(error.message.size(), 16'000u);
}

TEST(ClusterFile, TooManyPsAreRefused) {
  std::string text = kCluster;
  for (int i = 0; i < 1024; ++i) text += "[[ps]]\naddress = \"127.0.0.1:" + std::to_string(9000 + i) + "\"\n";
  EXPECT_THAT(cluster_error("[metrics]\nlisten = \"\"" + text).message,
              HasSubstr("there are 1025 [[ps]] sections; expected at most 1024"));
}

TEST(JobFile, ThousandsOfUnknownKeysAreRefusedInAFewLines) {
  std::string text = kJob;
  for (int i = 0; i < 60'000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const Error error = job_error(text);
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, AllOf(HasSubstr("train.k0 is not a known key"), HasSubstr("and 59980 other problems")));
  EXPECT_LT(error.message.size(), 16'000u);
}

TEST(JobFile, LongWordsAreShortenedInTheMessage) {
  const std::string word(100'000, 'x');
  for (const std::string& line : {word + " = 1", "mode = \"" + word + "\"", "mode = [\"" + word + "\"]", word})
    EXPECT_LT(job_error(job_with(line)).message.size(), 2000u);
}

TEST(JobFile, DepthAndSizeAreBounded) {
  std::string deep;
  for (int i = 0; i < 60'000; ++i) deep += "a.";
  EXPECT_THAT(job_error(job_with(deep + "a = 1")).message, HasSubstr("job.toml:13:32: a key has more than 16 parts"));
  EXPECT_THAT(job_error(job_with("#" + std::string(1 << 20, ' '))).message,
              HasSubstr("bytes; expected at most 1048576"));
}

// For the operating system, a path ends at a NUL. Other control characters could change what a terminal shows.
TEST(JobFile, ControlCharactersAreRefusedAndNotRepeated) {
  for (const char* escape : {"\\u0000", "\\u001B", "\\n", "\\u007F", "\\u009B"}) {
    const Error error = job_error(replaced(kJob, "\"/data\"", "\"/data" + std::string(escape) + "x\""));
    EXPECT_THAT(error.message, HasSubstr("job.toml:8:8: data.path has a control character at byte 6")) << escape;
  }
  EXPECT_THAT(job_error(job_with("\"a\\u001Bb\" = 1")).message,
              AllOf(HasSubstr("the key \"a\\u001Bb\" has a control character"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(job_error(job_with("x = \x1b[2J")).message, Not(HasSubstr("\x1b")));
  EXPECT_THAT(job_error(job_with("mode = \"\\u009B2J\"")).message, Not(HasSubstr("\xc2\x9b")));
}

TEST(ClusterFile, MissingFileIsNoInput) {
  auto cluster = read_cluster("/nowhere/cluster.toml");
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, ErrorCode::kNoInput);
  EXPECT_THAT(cluster.error().message, HasSubstr("/nowhere/cluster.toml: can't be read: No such file"));
}

TEST(JobFile, MinimalJobHasTheDefaults) {
  auto job = read_job(kJob);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->job.shards, 0u);
  EXPECT_EQ(job->job.stall_timeout, 60s);
  EXPECT_EQ(job->train.mode, Mode::kAsync);
  EXPECT_EQ(job->train.optimizer.rule, Rule::kSgd);
  EXPECT_EQ(job->model.initializer.kind, InitializerKind::kGlorot);
  EXPECT_EQ(job->data.sharding, Sharding::kLease);
  EXPECT_EQ(job->data.shuffle, ShuffleKind::kEpoch);
  EXPECT_EQ(job->evaluate.path, "");
}

TEST(JobFile, EveryKeyIsRead) {
  auto job = read_job(R"toml(
[job]
name = "a-1"
seed = 7
exchange = "ps"
shards = 3
placement = "greedy"
min_workers = 2
on_worker_loss = "shrink"
max_restarts = 3
restart_window = "1m"
stall_timeout = "2m"
[model]
builtin = "mlp"
layers = [784, 100, 10]
activation = "gelu"
initializer = "normal(0.02)"
loss = "mse"
[data]
format = "csv"
path = "/d"
files = "a*"
labels = "b*"
records = [10, 20]
sharding = "none"
shuffle = 1000
scale = 0.5
prefetch = 8
[train]
mode = "sync"
aggregate = 1
pipeline = 0
batch_size = 32
epochs = 3
steps = 1000
optimizer = { rule = "adamw", learning_rate = 1, weight_decay = 0.1, beta1 = 0.8, beta2 = 0.99, epsilon = 1e-6 }
schedule = { kind = "polynomial", warmup_steps = 10, decay_steps = 100, power = 2.0, end_factor = 0.1 }
scale_learning_rate = "linear"
clip = { kind = "global_norm", value = 1.0 }
nonfinite = { action = "fail", limit = 3 }
sum_order = "rank"
[evaluate]
path = "/e"
files = "t*"
labels = "l*"
every_steps = 50
[checkpoint]
directory = "/c"
every_steps = 100
every = "30s"
keep = 5
keep_every_steps = 1000
at_end = false
restore = "none"
init_from = "/w.safetensors"
init_map = { "fc.weight" = "dense0/weights" }
)toml");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->job.shards, 3u);
  EXPECT_EQ(job->job.placement, Placement::kGreedy);
  EXPECT_EQ(job->job.stall_timeout, 2min);
  EXPECT_EQ(job->model.initializer, (Initializer{InitializerKind::kNormal, 0.02}));
  EXPECT_EQ(job->model.activation, Activation::kGelu);
  EXPECT_EQ(job->data.records, (std::array<std::uint64_t, 2>{10, 20}));
  EXPECT_EQ(job->data.shuffle, ShuffleKind::kBuffer);
  EXPECT_EQ(job->data.shuffle_buffer, 1000u);
  EXPECT_EQ(job->train.optimizer.rule, Rule::kAdamw);
  EXPECT_DOUBLE_EQ(job->train.optimizer.learning_rate, 1.0);
  EXPECT_EQ(job->train.schedule.kind, ScheduleKind::kPolynomial);
  EXPECT_EQ(job->train.schedule.decay_steps, 100u);
  EXPECT_TRUE(job->train.scale_learning_rate_linear);
  EXPECT_EQ(job->train.clip.kind, ClipKind::kGlobalNorm);
  EXPECT_EQ(job->train.nonfinite.action, NonfiniteAction::kFail);
  EXPECT_EQ(job->evaluate.every_steps, 50u);
  EXPECT_EQ(job->job.max_restarts, 3u);
  EXPECT_EQ(job->job.restart_window, 1min);
  EXPECT_EQ(job->checkpoint.directory, "/c");
  EXPECT_EQ(job->checkpoint.every_steps, 100u);
  EXPECT_EQ(job->checkpoint.every, 30s);
  EXPECT_EQ(job->checkpoint.keep, 5u);
  EXPECT_EQ(job->checkpoint.keep_every_steps, 1000u);
  EXPECT_FALSE(job->checkpoint.at_end);
  EXPECT_EQ(job->checkpoint.restore, Restore::kNone);
  EXPECT_EQ(job->checkpoint.init_from, "/w.safetensors");
  EXPECT_EQ(job->checkpoint.init_map.at("fc.weight"), "dense0/weights");
}

TEST(JobFile, DefaultsFollowTheRule) {
  EXPECT_DOUBLE_EQ(read_job(job_with("optimizer = { rule = \"rmsprop\" }")).value().train.optimizer.momentum, 0.0);
  EXPECT_DOUBLE_EQ(read_job(job_with("optimizer = { rule = \"momentum\" }")).value().train.optimizer.momentum, 0.9);
  EXPECT_DOUBLE_EQ(read_job(job_with("optimizer = { rule = \"adagrad\" }")).value().train.optimizer.epsilon, 1e-10);
  EXPECT_DOUBLE_EQ(read_job(job_with("optimizer = { rule = \"adam\" }")).value().train.optimizer.epsilon, 1e-8);
  EXPECT_DOUBLE_EQ(
      read_job(job_with("optimizer = { rule = \"rmsprop\", momentum = 0.5 }")).value().train.optimizer.momentum, 0.5);
}

TEST(JobFile, EmptyPatternTurnsEvaluationOff) {
  EXPECT_TRUE(read_job(job_with("[evaluate]\nfiles = \"\"\nlabels = \"l*\"\nevery_steps = 3")));
}

TEST(JobFile, EvaluationOnTheSameFolderIsFilledIn) {
  EXPECT_EQ(read_job(job_with("[evaluate]\nfiles = \"t*\"")).value().evaluate.path, "/data");
}

class JobMistake : public testing::TestWithParam<Mistake> {};

TEST_P(JobMistake, IsNamed) {
  const Error error = job_error(GetParam().text);
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Each, JobMistake,
    testing::Values(
        Mistake{"MisspelledKey", job_with("batchsize = 3"),
                "train.batchsize is not a known key; did you mean \"batch_size\"?"},
        Mistake{"MisspelledSection", replaced(kJob, "[train]", "[trian]"),
                "trian is not a known key; did you mean \"train\"?"},
        Mistake{"MissingSection", "[job]\nname = \"a\"\n", "train is missing; expected a table"},
        Mistake{"MisplacedKey", job_with("learning_rate = 0.1"), "did you mean \"train.optimizer.learning_rate\"?"},
        Mistake{"WrongType", replaced(kJob, "batch_size = 10", "batch_size = \"10\""),
                "train.batch_size is \"10\"; expected an integer from 1"},
        Mistake{"FractionForInteger", replaced(kJob, "batch_size = 10", "batch_size = 10.5"),
                "train.batch_size is 10.5"},
        Mistake{"OutOfRange", replaced(kJob, "batch_size = 10", "batch_size = 0"),
                "job.toml:11:14: train.batch_size is 0; expected an integer from 1 to 16777216"},
        Mistake{"Missing", replaced(kJob, "batch_size = 10\n", ""), "train.batch_size is missing; expected an integer"},
        Mistake{"NegativeRate", job_with("optimizer = { learning_rate = -1 }"), "expected a number above 0"},
        Mistake{"InfiniteRate", job_with("optimizer = { learning_rate = inf }"), "expected a number above 0"},
        Mistake{"RateBeyondFloats", job_with("optimizer = { learning_rate = 1e308 }"),
                "train.optimizer.learning_rate is 1e+308; expected a number above 0 that fits a 32-bit float"},
        Mistake{"RateBelowFloats", job_with("optimizer = { learning_rate = 1e-300 }"),
                "expected a number above 0 that fits a 32-bit float (0, or an absolute value from 1.2e-38 to 3.4e+38)"},
        Mistake{"NotANumber", job_with("optimizer = { learning_rate = nan }"), "expected a number above 0"},
        Mistake{"HugeDeviation", replaced(kJob, "layers", "initializer = \"normal(1e300)\"\nlayers"),
                "the deviation above 0"},
        Mistake{"NameWithCapitals", replaced(kJob, "\"test\"", "\"Test\""), "letters a-z, digits and"},
        Mistake{"NeitherStepsNorEpochs", replaced(kJob, "steps = 100", "steps = 0"),
                "train.steps and train.epochs are both 0"},
        Mistake{"UnknownRule", job_with("optimizer = { rule = \"adma\" }"), "did you mean \"adam\"?"},
        Mistake{"LaterRule", job_with("optimizer = { rule = \"lamb\" }"), "is not in this version"},
        Mistake{"KeyOfAnotherRule", job_with("optimizer = { rule = \"sgd\", momentum = 0.9 }"),
                "train.optimizer.momentum has a meaning only with rule"},
        Mistake{"StalenessWithoutSsp", job_with("staleness = 3"),
                "train.staleness has a meaning only with mode = \"ssp\""},
        Mistake{"AggregateWithoutSync", job_with("aggregate = 3"),
                "train.aggregate has a meaning only with mode = \"sync\""},
        Mistake{"LaterSumOrder", job_with("mode = \"sync\"\nsum_order = \"arrival\""),
                "train.sum_order = \"arrival\" is not in this version; expected \"rank\", or leave it out"},
        Mistake{"StepScheduleWithoutPeriod", job_with("schedule = { kind = \"step\" }"),
                "train.schedule.every_steps is the period; it must be above 0"},
        Mistake{"CosineWithoutLength", job_with("schedule = { kind = \"cosine\" }"),
                "train.schedule.decay_steps is the number of steps until the rate stops changing; it must be above 0"},
        Mistake{"KeyOfAnotherSchedule", job_with("schedule = { kind = \"cosine\", decay_steps = 9, power = 2 }"),
                "train.schedule.power has a meaning only with"},
        Mistake{"ClipWithoutValue", job_with("clip = { kind = \"value\" }"), "train.clip.value must be above 0"},
        Mistake{"ClipValueWithoutKind", job_with("clip = { value = 1.0 }"), "train.clip.value has a meaning only with"},
        Mistake{"OneLayer", replaced(kJob, "[4, 2]", "[4]"), "model.layers has 1 sizes; expected at least 2"},
        Mistake{"NoLayers", replaced(kJob, "layers = [4, 2]\n", ""), "model.layers is missing"},
        Mistake{"EmptyLayer", replaced(kJob, "[4, 2]", "[4, 0, 2]"), "job.toml:6:14: model.layers[1] is 0"},
        Mistake{"LayersForCnn", replaced(kJob, "\"mlp\"", "\"cnn\""),
                "model.layers has a meaning only with builtin = \"linear\" or \"mlp\""},
        Mistake{"UnknownModel", replaced(kJob, "\"mlp\"", "\"mpl\""), "did you mean \"mlp\"?"},
        Mistake{"BadInitializer", replaced(kJob, "layers", "initializer = \"normal\"\nlayers"),
                "\"normal(STANDARD DEVIATION)\""},
        Mistake{"ZeroDeviation", replaced(kJob, "layers", "initializer = \"normal(0)\"\nlayers"),
                "the deviation above 0"},
        Mistake{"EmptyRecords", replaced(kJob, "files", "records = [5, 5]\nfiles"), "0 <= first < end"},
        Mistake{"BadShuffle", replaced(kJob, "files", "shuffle = 0\nfiles"),
                "\"epoch\", \"none\" or the size of a buffer"},
        Mistake{"ZeroScale", replaced(kJob, "files", "scale = 0\nfiles"), "data.scale is 0"},
        Mistake{"ZeroShards", replaced(kJob, "[model]", "shards = 0\n[model]"),
                "\"auto\" or an integer from 1 to 4096"},
        Mistake{"LaterExchange", replaced(kJob, "[model]", "exchange = \"allreduce\"\n[model]"),
                "job.exchange = \"allreduce\" is not in this version; expected \"ps\", or leave it out"},
        Mistake{"WaitNeedsSync", replaced(kJob, "[model]", "on_worker_loss = \"wait\"\n[model]"),
                "because otherwise a step doesn't need every worker"},
        Mistake{"CheckpointKeysWithoutDirectory", job_with("[checkpoint]\nkeep = 3"),
                "checkpoint.keep has a meaning only with checkpoint.directory"},
        Mistake{"InitMapWithoutInitFrom", job_with("[checkpoint]\ninit_map = { \"a\" = \"b\" }"),
                "checkpoint.init_map has a meaning only with checkpoint.init_from"},
        Mistake{"InitMapOfNumbers", job_with("[checkpoint]\ninit_from = \"/w\"\ninit_map = { \"a\" = 3 }"),
                "checkpoint.init_map.a"},
        Mistake{"EvaluateWithoutFiles", job_with("[evaluate]\nevery_steps = 3"),
                "evaluate.every_steps has a meaning only with evaluate.files"},
        Mistake{"DateForString", replaced(kJob, "\"test\"", "2026-01-01"), "job.name is"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

TEST(JobFile, NumberOfStepsThatIsNoNumberIsTheOnlyProblem) {
  const Result<JobConfig> job = read_job(replaced(kJob, "steps = 100", "steps = \"x\""));
  ASSERT_FALSE(job);
  EXPECT_NE(job.error().message.find("train.steps is \"x\""), std::string::npos) << job.error().message;
  EXPECT_EQ(job.error().message.find("both 0"), std::string::npos) << job.error().message;
}

TEST(JobFile, MisspeltNumberOfEpochsIsTheOnlyProblem) {
  const Result<JobConfig> job = read_job(replaced(kJob, "steps = 100", "epoch = 3"));
  ASSERT_FALSE(job);
  EXPECT_NE(job.error().message.find("did you mean \"epochs\"?"), std::string::npos) << job.error().message;
  EXPECT_EQ(job.error().message.find("both 0"), std::string::npos) << job.error().message;
}

TEST(JobFile, WhatOnlyBothFilesTellIsChecked) {
  const ClusterConfig cluster = parse_cluster(kCluster, "cluster.toml").value();
  EXPECT_TRUE(check_job_fits(read_job(kJob).value(), cluster));
  const Status aggregate = check_job_fits(read_job(job_with("mode = \"sync\"\naggregate = 2")).value(), cluster);
  ASSERT_FALSE(aggregate);
  EXPECT_EQ(aggregate.error().code, ErrorCode::kConfig);
  EXPECT_THAT(aggregate.error().message, HasSubstr("train.aggregate is 2, but the cluster has 1 worker"));
  EXPECT_FALSE(check_job_fits(read_job(replaced(kJob, "[model]", "min_workers = 2\n[model]")).value(), cluster));
}

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
