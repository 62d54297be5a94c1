// Each mistake in a job.toml gives one clear message with its place and the right code; all mistakes are reported at
// once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/config/reader/reader.h"
#include "tests/common/config/reader/texts.h"

namespace disttrain::config {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST(JobFile, MinimalJobHasTheDefaults) {
  auto job = read_job(kJob);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->job.shards, 0u);
  EXPECT_EQ(job->job.stall_timeout, 60s);
  EXPECT_EQ(job->job.ps_timeout, 0s);
  EXPECT_EQ(job->job.workers_timeout, 0s);
  EXPECT_EQ(job->job.on_failure, OnFailure::kEnd);
  EXPECT_EQ(job->job.max_resubmits, 3u);
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
ps_timeout = "3m"
workers_timeout = "4m"
on_failure = "resubmit"
max_resubmits = 5
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
max_expansion = 7
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
accumulate = 4
state = "lowest_rank"
profile_steps = [11, 30]
sum_order = "rank"
[evaluate]
path = "/e"
files = "t*"
labels = "l*"
every_steps = 50
batch_size = 200
average = 0.99
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
  EXPECT_EQ(job->job.ps_timeout, 3min);
  EXPECT_EQ(job->job.workers_timeout, 4min);
  EXPECT_EQ(job->job.on_failure, OnFailure::kResubmit);
  EXPECT_EQ(job->job.max_resubmits, 5u);
  EXPECT_EQ(job->model.initializer, (Initializer{InitializerKind::kNormal, 0.02}));
  EXPECT_EQ(job->model.activation, Activation::kGelu);
  EXPECT_EQ(job->data.records, (std::array<std::uint64_t, 2>{10, 20}));
  EXPECT_EQ(job->data.shuffle, ShuffleKind::kBuffer);
  EXPECT_EQ(job->data.max_expansion, 7u);
  EXPECT_EQ(job->data.shuffle_buffer, 1000u);
  EXPECT_EQ(job->train.optimizer.rule, Rule::kAdamw);
  EXPECT_DOUBLE_EQ(job->train.optimizer.learning_rate, 1.0);
  EXPECT_EQ(job->train.schedule.kind, ScheduleKind::kPolynomial);
  EXPECT_EQ(job->train.schedule.decay_steps, 100u);
  EXPECT_TRUE(job->train.scale_learning_rate_linear);
  EXPECT_EQ(job->train.clip.kind, ClipKind::kGlobalNorm);
  EXPECT_EQ(job->train.nonfinite.action, NonfiniteAction::kFail);
  EXPECT_EQ(job->evaluate.every_steps, 50u);
  EXPECT_EQ(job->evaluate.batch_size, 200u);
  EXPECT_EQ(job->evaluate.average, 0.99);
  EXPECT_EQ(job->train.accumulate, 4u);
  EXPECT_EQ(job->train.step_records(), 128u);
  EXPECT_EQ(job->train.state, StateRule::kLowestRank);
  EXPECT_EQ(job->train.profile_steps, (std::array<std::uint64_t, 2>{11, 30}));
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
      read_job(job_with("mode = \"sync\"\noptimizer = { rule = \"lamb\" }")).value().train.optimizer.epsilon, 1e-6);
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
        Mistake{"NameLikeAnOption", replaced(kJob, "\"test\"", "\"-x\""), "which doesn't begin with \"-\""},
        Mistake{"NameOfDashes", replaced(kJob, "\"test\"", "\"--\""), "job.name is \"--\""},
        Mistake{"NameLikeANumber", replaced(kJob, "\"test\"", "\"2\""), "and isn't a number"},
        Mistake{"ResubmitWithoutCheckpoints", replaced(kJob, "[model]", "on_failure = \"resubmit\"\n[model]"),
                "but the job takes no checkpoints, so it would begin anew: set checkpoint.directory"},
        Mistake{"BoundWithoutResubmit", replaced(kJob, "[model]", "max_resubmits = 5\n[model]"),
                "job.max_resubmits has a meaning only with job.on_failure = \"resubmit\""},
        Mistake{"NeitherStepsNorEpochs", replaced(kJob, "steps = 100", "steps = 0"),
                "train.steps and train.epochs are both 0"},
        Mistake{"UnknownRule", job_with("optimizer = { rule = \"adma\" }"), "did you mean \"adam\"?"},
        Mistake{"LambWithoutSync", job_with("optimizer = { rule = \"lamb\" }"),
                "needs the whole gradient of a variable, and only train.mode = \"sync\" waits for it"},
        Mistake{"LambWithCutVariables",
                replaced(job_with("mode = \"sync\"\noptimizer = { rule = \"lamb\" }"), "[model]",
                         "placement = \"partitioned\"\n[model]"),
                "cuts variables, but train.optimizer.rule = \"lamb\" needs each variable whole"},
        Mistake{"FtrlWithSchedule", job_with("optimizer = { rule = \"ftrl\" }\nschedule = { warmup_steps = 3 }"),
                "needs a constant learning rate"},
        Mistake{"FtrlWithScaledRate", job_with("optimizer = { rule = \"ftrl\" }\nscale_learning_rate = \"linear\""),
                "needs a constant learning rate"},
        Mistake{"L1OfAnotherRule", job_with("optimizer = { rule = \"sgd\", l1 = 0.1 }"),
                "train.optimizer.l1 has a meaning only with rule = \"ftrl\""},
        Mistake{"DecayOfNothing", job_with("optimizer = { rule = \"adamw\", weight_decay_of = \"matrices\" }"),
                "train.optimizer.weight_decay_of has a meaning only with weight_decay above 0"},
        Mistake{"NegativeL2", job_with("optimizer = { rule = \"ftrl\", l2 = -1 }"), "train.optimizer.l2 is -1"},
        Mistake{"NoAccumulation", job_with("accumulate = 0"), "train.accumulate is 0; expected an integer from 1"},
        Mistake{"TooManyRecordsInAStep", job_with("accumulate = 16000000"),
                "train.batch_size times train.accumulate is 160000000 records per step; expected at most 16777216"},
        Mistake{"ProfileFromStepZero", job_with("profile_steps = [0, 5]"),
                "train.profile_steps is [0, 5]; expected [first, last] with 1 <= first <= last and at most 1000 steps"},
        Mistake{"ProfileBackwards", job_with("profile_steps = [6, 5]"), "train.profile_steps is [6, 5]; expected"},
        Mistake{"ProfileOfTooManySteps", job_with("profile_steps = [5, 1005]"),
                "train.profile_steps is [5, 1005]; expected"},
        Mistake{"ProfileOfOneNumber", job_with("profile_steps = [5]"), "train.profile_steps is [5]; expected"},
        Mistake{"ProfileWithoutAFolder", job_with("profile_steps = [1, 10]"),
                "the job has no folder for it, because the trace is written beside TensorBoard's event files"},
        Mistake{"ProfileAfterTheEnd", job_with("profile_steps = [101, 110]\n[checkpoint]\ndirectory = \"/c\""),
                "train.profile_steps begins at step 101, but train.steps ends the job at step 100"},
        Mistake{"UnknownState", job_with("state = \"max\""), "train.state is \"max\"; expected \"mean\""},
        Mistake{"AverageOfOne", job_with("[evaluate]\naverage = 1"), "evaluate.average is 1; expected a number"},
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
                "\"epoch\", \"blocks\", \"none\" or the size of a buffer"},
        Mistake{"ZeroScale", replaced(kJob, "files", "scale = 0\nfiles"), "data.scale is 0"},
        Mistake{"MixAboveOne", replaced(kJob, "files", "mix = 1.5\nfiles"), "data.mix is 1.5"},
        Mistake{"MixedBlocks", replaced(kJob, "files", "mix = 0.2\nshuffle = \"blocks\"\nfiles"),
                "data.mix takes a second record from anywhere"},
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
        Mistake{"StopAfterWithoutFiles", job_with("[evaluate]\nstop_after = 3"),
                "evaluate.stop_after has a meaning only with evaluate.files"},
        Mistake{"BestWithoutCheckpoints", job_with("[evaluate]\nfiles = \"t*\"\nkeep_best = 3"),
                "evaluate.keep_best is 3, but the job takes no checkpoints: set checkpoint.directory"},
        Mistake{"MetricThatNothingUses", job_with("[evaluate]\nfiles = \"t*\"\nmetric = \"auc\""),
                "evaluate.metric is \"auc\", but only evaluate.stop_after and evaluate.keep_best use it"},
        Mistake{"EvaluationBatchWithoutFiles", job_with("[evaluate]\nbatch_size = 3"),
                "evaluate.batch_size has a meaning only with evaluate.files"},
        Mistake{"TooLargeEvaluationBatch", job_with("[evaluate]\nfiles = \"t*\"\nbatch_size = 16777217"),
                "evaluate.batch_size is 16777217; expected an integer from 0 to 16777216"},
        Mistake{"DateForString", replaced(kJob, "\"test\"", "2026-01-01"), "job.name is"},
        Mistake{"NumberForFolder", replaced(kJob, "path = \"/data\"", "path = nan"),
                "data.path is nan; expected a folder, as a string in quotes"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

TEST(JobFile, NumberOfStepsThatIsNoNumberIsTheOnlyProblem) {
  const Result<JobConfig> job = read_job(replaced(kJob, "steps = 100", "steps = \"x\""));
  ASSERT_FALSE(job);
  EXPECT_NE(job.error().message.find("train.steps is \"x\""), std::string::npos) << job.error().message;
  EXPECT_EQ(job.error().message.find("both 0"), std::string::npos) << job.error().message;
}

// Each of these files has one problem, and the keys that belong to it give no others.
TEST(JobFile, OneMistakeIsOneProblem) {
  const std::string model = "[model]\nbuiltin = \"mlp\"\nlayers = [4, 2]\n";
  const std::string data = "[data]\npath = \"/data\"\nfiles = \"train*\"\n";
  const std::string trained = replaced(replaced(kJob, model, ""), data, "");
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {replaced(kJob, "path = \"/data\"", "path = nan"), "data.path is nan"},
           {replaced(kJob, "[4, 2]", "[4, 0, 2]"), "model.layers[1] is 0; expected an integer from 1"},
           {trained + "[model]\ntrainer = 7\nfolder = \"/f\"\n", "model.trainer is 7; expected a list of strings"},
           {trained + "[model]\ntrainer = []\nstart_timeout = \"9s\"\n",
            "model.trainer is []; expected a list of strings with at least 1"},
           {trained + "[model]\ntrainr = [\"a\"]\nfolder = \"/f\"\n", "did you mean \"trainer\"?"},
           {replaced(kJob, model, "[model]\nbuiltin = \"\"\nprogram = \"a.pt2\"\n"), "model.builtin is \"\"; expected"},
           {replaced(kJob, model, "[model]\nprogram = 7\n"), "model.program is 7"}}) {
    const Error error = job_error(text);
    EXPECT_THAT(error.message, HasSubstr(message));
    EXPECT_EQ(std::count(error.message.begin(), error.message.end(), '^'), 1) << error.message;
  }
}

TEST(JobFile, EmptyListsAreTheDefaults) {
  const auto defaults = read_job(kJob);
  for (const char* place : {"[model]\ntrainer = []", "[model]\nclass_weights = []\nmetrics = {}"}) {
    const auto job = read_job(replaced(kJob, "[model]", place));
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job_toml(*job), job_toml(*defaults));
  }
  const auto job = read_job(replaced(kJob, "[data]", "[data]\nrecords = []\nmissing = []"));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job_toml(*job), job_toml(*defaults));
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

}  // namespace
}  // namespace disttrain::config
