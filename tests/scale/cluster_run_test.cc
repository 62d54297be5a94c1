// Simulated clusters with few tasks, whose step times and bytes can be computed by hand.
#include "scale/cluster_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scale/frames.h"

namespace disttrain::scale {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Duration stopped_clock() {
  return Duration();
}

RunOptions options_of(Mode mode, std::uint32_t workers, std::uint32_t ps, std::uint64_t words) {
  RunOptions options;
  options.workers = workers;
  options.ps_threads.assign(ps, 1);
  options.job.job.name = "scale";
  options.job.train.mode = mode;
  options.job.train.batch_size = 10;
  VariableSpec variable;
  variable.name = "v";
  variable.shape = {words};
  options.model.variables.push_back(variable);
  options.model.columns = {{.name = "inputs", .shape = {1}}};
  options.steps = 5;
  options.clock = stopped_clock;
  return options;
}

RunReport run_well(const RunOptions& options) {
  const auto report = run(options);
  if (report) return *report;
  ADD_FAILURE() << report.error().message;
  RunReport none;
  none.loads.emplace_back();
  return none;
}

const HostLoad& load_of(const RunReport& report, TaskId task) {
  for (const HostLoad& load : report.loads)
    if (load.task == task) return load;
  ADD_FAILURE() << "no load of " << task;
  return report.loads.front();
}

constexpr auto kData = static_cast<std::size_t>(Traffic::kData);

// The frame that brings a push with all gradients of a model of one bucket, and the frame that brings its parameters.
std::uint64_t push_bytes(std::uint64_t words, bool is_to_pacer) {
  Push push;
  push.last = true;
  push.want = Want::kAll;
  push.examples = 10;
  if (is_to_pacer) push.visited = {Interval{0, 10}};
  return FrameSizes().of(push, words * sizeof(float));
}
std::uint64_t reply_bytes(std::uint64_t words) {
  return FrameSizes().of(Parameters(), words * sizeof(float));
}

// A step of one worker and one ps: the computation, the gradients on the link, and the parameters on the link.
TEST(ClusterRun, StepOfOneWorkerAndOnePsTakesTheTimeOfTheFormula) {
  for (const Mode mode : {Mode::kAsync, Mode::kSync, Mode::kSsp}) {
    constexpr std::uint64_t kWords = 60'000;  // one bucket
    RunOptions options = options_of(mode, 1, 1, kWords);
    options.compute = microseconds(300);
    options.speed = {1.25e9, microseconds(50)};
    const RunReport report = run_well(options);
    const double bytes = static_cast<double>(push_bytes(kWords, true) + reply_bytes(kWords));
    const double seconds = 300e-6 + 2 * 50e-6 + bytes / 1.25e9;
    EXPECT_NEAR(to_seconds(report.step_median), seconds, 10e-9) << static_cast<int>(mode);
    EXPECT_EQ(report.parts.computing, microseconds(300));
    EXPECT_EQ(report.parts.others, Duration());
    EXPECT_EQ(report.parts.computing + report.parts.sending + report.parts.receiving, report.step_median);
    EXPECT_EQ(report.shards, 1U);
    EXPECT_EQ(report.global_steps, 5U);
  }
}

TEST(ClusterRun, BytesOfEachLinkAreThoseOfTheFrames) {
  constexpr std::uint64_t kWords = 1000;
  const RunReport report = run_well(options_of(Mode::kSync, 3, 2, kWords));
  ASSERT_EQ(report.shards, 1U);
  const std::uint64_t pushed = 5 * push_bytes(kWords, true);
  const std::uint64_t replied = 5 * reply_bytes(kWords);
  for (std::uint32_t w = 0; w < 3; ++w) {
    const HostLoad& worker = load_of(report, TaskId{Role::kWorker, w});
    EXPECT_EQ(worker.sent[kData], (Carried{pushed, 5}));
    EXPECT_EQ(worker.received[kData], (Carried{replied, 5}));
  }
  const HostLoad& ps = load_of(report, TaskId{Role::kPs, 0});
  EXPECT_EQ(ps.received[kData], (Carried{3 * pushed, 15}));
  EXPECT_EQ(ps.sent[kData], (Carried{3 * replied, 15}));
  EXPECT_EQ(load_of(report, TaskId{Role::kPs, 1}).sent[kData], Carried()) << "it has no shard";
  EXPECT_EQ(load_of(report, TaskId{Role::kChief, 0}).sent[kData], Carried());
}

// With several shards, each of the others sends the pacer one report per step, and gets one commit.
TEST(ClusterRun, ShardsAgreeOnEachStepByTwoMessages) {
  RunOptions options = options_of(Mode::kSync, 2, 3, 3 * kMaxBucketWords);
  const RunReport report = run_well(options);
  ASSERT_EQ(report.shards, 3U);
  constexpr auto kPeer = static_cast<std::size_t>(Traffic::kPeer);
  const HostLoad& pacer = load_of(report, TaskId{Role::kPs, 0});
  EXPECT_EQ(pacer.received[kPeer].messages, 10U);
  EXPECT_EQ(pacer.sent[kPeer].messages, 10U);
  EXPECT_EQ(load_of(report, TaskId{Role::kPs, 2}).sent[kPeer].messages, 5U);
}

TEST(ClusterRun, SyncReachesItsBound) {
  RunOptions options = options_of(Mode::kSync, 40, 2, 2'000'000);
  options.compute = milliseconds(20);
  const RunReport report = run_well(options);
  EXPECT_GE(report.step_median, report.bound);
  EXPECT_LT(to_seconds(report.step_median), 1.3 * to_seconds(report.bound));
}

TEST(ClusterRun, WorkersWithoutComputationWaitForThePsInAsync) {
  RunOptions options = options_of(Mode::kAsync, 20, 1, 200'000);
  const RunReport report = run_well(options);
  EXPECT_EQ(report.bound, report.ps_bound);
  EXPECT_GE(report.step_median + microseconds(100), report.bound);
  EXPECT_LT(to_seconds(report.step_median), 1.1 * to_seconds(report.bound));
  EXPECT_EQ(report.loads.at(report.busiest).task, (TaskId{Role::kPs, 0}));
  EXPECT_EQ(report.global_steps, 100U);
}

TEST(ClusterRun, SameOptionsGiveTheSameReport) {
  const RunOptions options = options_of(Mode::kSsp, 7, 3, 3'000'000);
  const RunReport first = run_well(options);
  const RunReport second = run_well(options);
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.step_median, second.step_median);
  EXPECT_EQ(first.measured, second.measured);
  for (std::size_t i = 0; i < first.loads.size(); ++i) {
    EXPECT_EQ(first.loads[i].sent, second.loads[i].sent);
    EXPECT_EQ(first.loads[i].received, second.loads[i].received);
  }
}

// The start-up of a thousand tasks: hellos, placement, leases, channels.
TEST(ClusterRun, JobOfManyWorkersStarts) {
  RunOptions options = options_of(Mode::kSync, 300, 20, 20'000);
  options.steps = 1;
  const RunReport report = run_well(options);
  EXPECT_EQ(report.loads.size(), 321U);
  EXPECT_LT(report.startup, std::chrono::seconds(2));
}

// 2,000 heartbeats per timeout of one second, and as many answers.
TEST(ClusterRun, ChiefOfManyTasksHearsFewHeartbeatsOfEach) {
  RunOptions options = options_of(Mode::kSync, 390, 10, 2'000);
  options.compute = milliseconds(500);
  options.steps = 4;
  const RunReport report = run_well(options);
  const HostLoad& chief = load_of(report, TaskId{Role::kChief, 0});
  const double per_second = static_cast<double>(chief.total_received().messages) / to_seconds(report.measured);
  EXPECT_NEAR(per_second, 2000, 100);
}

TEST(ClusterRun, JobThatDoesNotFitIsRefusedWithTheReason) {
  RunOptions options = options_of(Mode::kSync, 1, 1, 1000);
  options.job.job.shards = 5;
  const auto report = run(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kConfig);
  EXPECT_THAT(report.error().message, testing::HasSubstr("shards"));
}

// A link so slow that a step takes longer than job.stall_timeout: the workers give up, as real ones would.
TEST(ClusterRun, JobThatStallsFails) {
  RunOptions options = options_of(Mode::kSync, 1, 1, 200'000'000);
  options.speed.bytes_per_second = 125'000;
  options.job.job.stall_timeout = std::chrono::seconds(1);
  const auto report = run(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kFailed);
  EXPECT_THAT(report.error().message, testing::HasSubstr("the simulated job failed"));
}

}  // namespace
}  // namespace disttrain::scale
