// A whole worker except its process. The main loop, the step thread and the sockets are real; the engine is fake. The
// test plays the chief and the shards.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/config/reader/reader.h"
#include "tests/workerd/exchange/fake_peers.h"
#include "workerd/compute/fake_engine.h"
#include "workerd/worker.h"

namespace disttrain::workerd {
namespace {

constexpr std::uint64_t kRecords = 50;

FakeModel fake_model() {
  return FakeModel{.variable_elements = {6, 10}, .input_elements = 2, .classes = 10, .reads_parameters = false};
}

// An engine whose computations wait at a gate, so that a test can act in the middle of a computation.
class GatedEngine final : public Engine {
 public:
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool closed = false;
    bool inside = false;
  };
  explicit GatedEngine(Gate& gate) : gate_(gate), engine_(make_fake_engine(fake_model())) {}

  const ModelSpec& describe() const override { return engine_->describe(); }
  Status takes(Program program, std::uint64_t examples) const override { return engine_->takes(program, examples); }
  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    return engine_->open(layout, parameters, gradients);
  }
  Result<std::vector<float>> initial_values() override { return engine_->initial_values(); }
  void start(const EngineInput& input, EngineSink& sink) override {
    if (input.program == Program::kEvaluate) return engine_->start(input, sink);
    std::unique_lock lock(gate_.mutex);
    gate_.inside = true;
    gate_.changed.notify_all();
    gate_.changed.wait(lock, [this] { return !gate_.closed; });
    gate_.inside = false;
    lock.unlock();
    engine_->start(input, sink);
  }
  void abort() override { engine_->abort(); }

 private:
  Gate& gate_;
  std::unique_ptr<Engine> engine_;
};

class WorkerProcessTest : public ::testing::Test {
 protected:
  WorkerProcessTest()
      : shards_(loop_, layout()), chief_(std::in_place, loop_), log_(TaskId{Role::kWorker, 0}, quiet()) {
    folder_ = std::filesystem::temp_directory_path() / ("worker_process_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream train(folder_ / "train.csv");
    for (std::uint64_t r = 0; r < kRecords; ++r) train << r % 7 << ",1," << r % 10 << "\n";
    std::ofstream test(folder_ / "test.csv");
    for (int r = 0; r < 20; ++r) test << "1,1," << r % 10 << "\n";
  }
  ~WorkerProcessTest() override {
    open_gate();
    worker_.reset();
    std::filesystem::remove_all(folder_);
  }

  static LogConfig quiet() {
    LogConfig config;
    config.level = "error";
    return config;
  }
  static Layout layout() {
    Layout layout;
    layout.model = describe_fake(fake_model());
    layout.shards = 2;
    layout.variable_begins = {10, 0};
    layout.buckets = {Bucket{ShardId(0), 0, 0, 6}, Bucket{ShardId(1), 6, 0, 5}, Bucket{ShardId(0), 11, 6, 5}};
    return layout;
  }
  SharedJobConfig job_config(const std::string& train = "") const {
    const std::string toml =
        "[job]\nname = \"t\"\n[model]\nbuiltin = \"mlp\"\nlayers = [2, 10]\n[data]\nformat = \"csv\"\npath = \"" +
        folder_.string() + "\"\nfiles = \"train.csv\"\n[train]\nbatch_size = 4\nepochs = 1\n" + train +
        "\n[evaluate]\nfiles = \"test.csv\"\n";
    const Result<JobConfig> config = config::read_job(toml);
    EXPECT_TRUE(config) << config.error().message;
    return std::make_shared<const JobConfig>(config.value_or(JobConfig()));
  }

  void start_worker() {
    daemon::Startup startup;
    startup.cluster.name = "test";
    startup.cluster.chief.address = chief_->address();
    startup.cluster.heartbeat.timeout = std::chrono::milliseconds(500);
    startup.cluster.workers.push_back(WorkerConfig{"127.0.0.1:0", 1, {}, "cpu"});
    startup.task = TaskId{Role::kWorker, 0};
    startup.incarnation = Incarnation(42);
    startup.address = startup.listen_address = "127.0.0.1:0";
    worker_ = std::make_unique<Worker>(
        loop_, *transport_, log_, startup,
        [this](const JobConfig&, const std::vector<ColumnSpec>&, Arena&,
               const EngineWorld& world) -> Result<MadeEngine> {
          if (no_engine_) return tl::unexpected(*no_engine_);
          if (makes_none_.exchange(false)) {
            while (!world.is_cancelled()) std::this_thread::yield();
            return fail(ErrorCode::kTemporary, "cancelled");
          }
          return MadeEngine{std::make_unique<GatedEngine>(gate_), 0, 0};
        },
        [this](const Error& why) { refused_ = why; }, [this] { is_hung_ = true; });
    const Status ok = worker_->start();
    ASSERT_TRUE(ok) << ok.error().message;
    run_until(loop_, [this] { return !chief_->peers.empty(); });
  }
  OpenJob open_job(const std::string& train = "") {
    OpenJob open;
    open.job = JobId(5);
    open.generation = Generation(1);
    open.token = 11;
    open.config = job_config(train);
    open.layout = shards_.layout;
    open.owners = shards_.owners();
    open.roster = Roster{RosterVersion(1), {Member{TaskId{Role::kWorker, 0}, Incarnation(42)}}};
    open.train_records = kRecords;
    return open;
  }
  // Lends everything in two leases.
  void lend_all() {
    chief_->on_message = [this](Peer& peer, const wire::ControlMessage& message) {
      if (!std::holds_alternative<LeaseRequest>(message)) return;
      Lease lease;
      lease.id = LeaseId(++leases_);
      lease.positions = {leases_ == 1 ? Interval{0, 30} : Interval{30, kRecords}};
      LeaseGrant grant{JobId(5), Generation(1), lease, leases_ >= 2};
      if (leases_ > 2) grant.lease.reset();
      peer.tell(grant);
    };
  }
  void open_and_start(const std::string& train = "") {
    chief_->worker().tell(open_job(train));
    chief_->wait_for<JobOpened>();
    chief_->worker().tell(StartJob{JobId(5), Generation(1)});
  }
  void close_gate() {
    const std::lock_guard lock(gate_.mutex);
    gate_.closed = true;
  }
  void open_gate() {
    const std::lock_guard lock(gate_.mutex);
    gate_.closed = false;
    gate_.changed.notify_all();
  }
  bool is_inside() {
    const std::lock_guard lock(gate_.mutex);
    return gate_.inside;
  }
  // The counts of failures in the worker's metrics: {missing, permission, corrupt, unfit}.
  std::vector<std::string> data_errors() const {
    metrics::Page page;
    worker_->collect(page);
    const std::string text = page.text();
    std::vector<std::string> counts;
    for (const char* reason : {"missing", "permission", "corrupt", "unfit"}) {
      const std::string series =
          "data_errors_total{task=\"worker/0\",job=\"t\",reason=\"" + std::string(reason) + "\"} ";
      const std::size_t begin = text.find(series);
      if (begin == std::string::npos) return {};
      const std::size_t value = begin + series.size();
      counts.push_back(text.substr(value, text.find('\n', value) - value));
    }
    return counts;
  }
  // The shards' parameters after each record was used once. The parameters begin at 0.
  std::vector<float> expected() const {
    float sum = 0.0F;
    for (std::uint64_t r = 0; r < kRecords; ++r) sum += static_cast<float>(r % 7 + r % 10);
    std::vector<float> values(16);
    for (std::uint32_t v = 0; v < 2; ++v)
      for (std::uint64_t i = 0; i < fake_model().variable_elements[v]; ++i)
        values[layout().variable_begins[v] + i] = sum * fake_coefficient(v, i);
    return values;
  }

  asio::io_context loop_;
  const std::unique_ptr<transport::Transport> transport_ = transport_of_steps();
  FakeShards shards_;
  std::optional<FakeChief> chief_;
  daemon::Log log_;
  std::filesystem::path folder_;
  GatedEngine::Gate gate_;
  std::uint64_t leases_ = 0;
  std::optional<Error> refused_;
  bool is_hung_ = false;
  std::optional<Error> no_engine_;        // if set, the engine can't be made, because of this error
  std::atomic<bool> makes_none_ = false;  // the next engine isn't made before its job is cancelled
  std::unique_ptr<Worker> worker_;
};

TEST_F(WorkerProcessTest, RegistersAndBeats) {
  start_worker();
  EXPECT_EQ(chief_->hellos.at(0).member.incarnation, Incarnation(42));
  EXPECT_FALSE(chief_->hellos.at(0).address.ends_with(":0"));
  const Heartbeat beat = chief_->wait_for<Heartbeat>();
  EXPECT_EQ(beat.job, JobId());
  EXPECT_EQ(beat.phase, Phase::kIdle);
  EXPECT_EQ(beat.phase_times.size(), static_cast<std::size_t>(kPhases));
}

TEST_F(WorkerProcessTest, DescribesTheModelAndTheData) {
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  const JobDescribed described = chief_->wait_for<JobDescribed>();
  EXPECT_EQ(described.model, describe_fake(fake_model()));
  EXPECT_EQ(described.train_records, kRecords);
  EXPECT_EQ(described.evaluation_records, 20U);
}

TEST_F(WorkerProcessTest, MissingDataComesBackWithItsCodeAndTheWorkerLivesOn) {
  std::filesystem::remove(folder_ / "train.csv");
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  const TaskFailed failed = chief_->wait_for<TaskFailed>();
  EXPECT_EQ(failed.code, ErrorCode::kNoInput);
  EXPECT_NE(failed.reason.find("train.csv"), std::string::npos) << failed.reason;
  chief_->worker().tell(CloseJob{JobId(5), Generation(), "no data"});
  EXPECT_EQ(chief_->wait_for<JobClosed>().job, JobId(5));
}

TEST_F(WorkerProcessTest, TrainingDataThatCannotBeUsedIsCountedByItsReason) {
  std::ofstream(folder_ / "train.csv") << "1,2,3,4\n";
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  chief_->wait_for<TaskFailed>();
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"0", "0", "0", "1"}));
  chief_->messages.clear();
  std::filesystem::remove(folder_ / "train.csv");
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  chief_->wait_for<TaskFailed>();
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"1", "0", "0", "1"}));
}

TEST_F(WorkerProcessTest, EngineThatCannotBeMadeIsNoErrorOfTheData) {
  no_engine_ = Error{ErrorCode::kConfig, "there is no device cuda:7"};
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  EXPECT_EQ(chief_->wait_for<TaskFailed>().reason, no_engine_->message);
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"0", "0", "0", "0"}));
}

TEST_F(WorkerProcessTest, EvaluationDataThatCannotBeUsedIsCountedWhenDescribed) {
  std::filesystem::remove(folder_ / "test.csv");
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  EXPECT_EQ(chief_->wait_for<TaskFailed>().code, ErrorCode::kNoInput);
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"1", "0", "0", "0"}));
}

TEST_F(WorkerProcessTest, EvaluationDataThatCannotBeUsedIsCountedWhenEvaluated) {
  std::ofstream(folder_ / "test.csv") << "1,1,nonsense,3\n";
  start_worker();
  lend_all();
  open_and_start();
  chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"0", "0", "0", "0"}));
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  EXPECT_EQ(chief_->wait_for<TaskFailed>().code, ErrorCode::kData);
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"0", "0", "1", "0"}));
}

TEST_F(WorkerProcessTest, TrainsAWholeJobAndEvaluates) {
  start_worker();
  lend_all();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  chief_->wait_for<JobDescribed>();
  open_and_start();
  const WorkerFinished finished = chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(finished.steps, 13U) << "30 and 20 records by 4: 8 and 5";
  EXPECT_EQ(shards_.examples, kRecords);
  EXPECT_EQ(shards_.values, expected());
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  const Evaluated evaluated = chief_->wait_for<Evaluated>();
  EXPECT_TRUE(evaluated.final);
  EXPECT_EQ(evaluated.examples, 20U);
  EXPECT_EQ(evaluated.step, Step(13));
  EXPECT_TRUE(value_of(evaluated.metrics, "accuracy").has_value());
  chief_->worker().tell(CloseJob{JobId(5), Generation(1), "finished"});
  chief_->wait_for<JobClosed>();
  run_until(loop_, [this] { return shards_.peers[0]->closed && shards_.peers[1]->closed; });
}

TEST_F(WorkerProcessTest, StepThreadThatHangsInAClosedJobEndsTheWorker) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->worker().tell(CloseJob{JobId(5), Generation(1), "killed"});
  run_until(loop_, [this] { return is_hung_; });
  run_until(loop_, [this] { return chief_->peers.back()->closed; });
}

TEST_F(WorkerProcessTest, StepThreadThatHangsWhenTheChiefBeginsAnotherJobEndsTheWorker) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->worker().tell(DescribeJob{JobId(6), job_config()});
  run_until(loop_, [this] { return is_hung_; });
}

TEST_F(WorkerProcessTest, AnotherJobInterruptsTheOneThatIsStillPrepared) {
  makes_none_ = true;
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  run_until(loop_, [this] { return !makes_none_; });
  chief_->worker().tell(DescribeJob{JobId(6), job_config()});
  EXPECT_EQ(chief_->wait_for<JobDescribed>().job, JobId(6));
  EXPECT_EQ(chief_->heard<JobClosed>().at(0).job, JobId(5));
  EXPECT_TRUE(chief_->heard<TaskFailed>().empty());
}

TEST_F(WorkerProcessTest, TheEndOfANewerJobStillInterruptsAnOlderOne) {
  makes_none_ = true;
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  run_until(loop_, [this] { return !makes_none_; });
  chief_->worker().tell(DescribeJob{JobId(6), job_config()});
  chief_->worker().tell(CloseJob{JobId(6), Generation(), "killed"});
  run_until(loop_, [this] { return chief_->heard<JobClosed>().size() == 2; });
  EXPECT_EQ(chief_->heard<JobClosed>().at(1).job, JobId(6));
}

TEST_F(WorkerProcessTest, WorkerThatIsRemovedComesBackWhenItHasReleasedTheJob) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  const std::size_t hellos = chief_->hellos.size();
  for (int i = 0; i < 3; ++i) chief_->worker().tell(CloseJob{JobId(5), Generation(1), "lost", true});
  chief_->messages.clear();
  chief_->wait_for<Heartbeat>();
  EXPECT_EQ(chief_->hellos.size(), hellos) << "its step thread still holds the job";
  open_gate();
  run_until(loop_, [this, hellos] { return chief_->hellos.size() > hellos; });
  EXPECT_NE(chief_->hellos.back().member.incarnation, Incarnation(42));
  chief_->wait_for<Heartbeat>();
  EXPECT_EQ(chief_->hellos.size(), hellos + 1) << "once";
  EXPECT_FALSE(is_hung_);
}

TEST_F(WorkerProcessTest, PipelineTrainsTheSame) {
  start_worker();
  lend_all();
  open_and_start("pipeline = 1");
  chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(shards_.examples, kRecords);
  EXPECT_EQ(shards_.values, expected());
}

TEST_F(WorkerProcessTest, CutChannelsLoseAndRepeatNothing) {
  start_worker();
  lend_all();
  std::uint64_t frames = 0;
  shards_.intercept = [&frames](Peer& peer, const wire::FrameHeader&) {
    if (++frames % 7 != 0) return false;
    peer.connection->close();  // closes the connection before the frame is handled
    return true;
  };
  open_and_start();
  chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(shards_.examples, kRecords);
  EXPECT_EQ(shards_.values, expected());
  EXPECT_FALSE(chief_->heard<Accusation>().empty());
}

TEST_F(WorkerProcessTest, ShardThatSendsGarbageIsAccusedAndTrainingGoesOnOverANewChannel) {
  start_worker();
  lend_all();
  std::uint64_t frames = 0;
  const Peer* garbler = nullptr;  // the peer that sends garbage; its later frames are ignored
  shards_.intercept = [&frames, &garbler](Peer& peer, const wire::FrameHeader&) {
    if (++frames != 6) return &peer == garbler;
    garbler = &peer;
    const std::vector<std::byte> nonsense(24, std::byte{0xff});
    peer.send(wire::FrameType::kParameters, nonsense, {}, JobId(5), Generation(1));
    return true;
  };
  open_and_start();
  chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(shards_.values, expected());
  EXPECT_EQ(chief_->wait_for<Accusation>().accused, (TaskId{Role::kPs, 0}));
}

TEST_F(WorkerProcessTest, RefusedChannelFailsTheJobNotTheTask) {
  shards_.answer_hello = [](Peer& peer, const ChannelHello&) {
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kConfig, "wrong token"}));
    return true;
  };
  start_worker();
  chief_->worker().tell(open_job());
  const TaskFailed failed = chief_->wait_for<TaskFailed>();
  EXPECT_NE(failed.reason.find("wrong token"), std::string::npos) << failed.reason;
  chief_->worker().tell(CloseJob{JobId(5), Generation(1), ""});
  chief_->wait_for<JobClosed>();
}

TEST_F(WorkerProcessTest, LayoutOfAnotherModelIsRefused) {
  start_worker();
  OpenJob open = open_job();
  open.layout.model.variables[0].name = "other";
  chief_->worker().tell(open);
  EXPECT_EQ(chief_->wait_for<TaskFailed>().code, ErrorCode::kConfig);
  // A later chief may not have heard this answer, so it must ask again.
  const std::size_t hellos = chief_->hellos.size();
  chief_->worker().connection->close();
  run_until(loop_, [this, hellos] { return chief_->hellos.size() > hellos; });
  EXPECT_EQ(chief_->hellos.back().job, open.job);
  EXPECT_EQ(chief_->hellos.back().generation, Generation());
}

TEST_F(WorkerProcessTest, HeartbeatsGoOnDuringAComputationAndTellOfIt) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  run_until(loop_, [this] {
    const auto beats = chief_->heard<Heartbeat>();
    return !beats.empty() && beats.back().phase == Phase::kCompute && beats.back().in_phase > Duration::zero();
  });
  open_gate();
  chief_->wait_for<WorkerFinished>();
}

TEST_F(WorkerProcessTest, CloseInTheMiddleOfAComputationReleasesEverythingAfterIt) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->worker().tell(CloseJob{JobId(5), Generation(1), "killed"});
  open_gate();
  chief_->wait_for<JobClosed>();
  EXPECT_TRUE(chief_->heard<WorkerFinished>().empty());
  run_until(loop_, [this] { return shards_.peers[0]->closed && shards_.peers[1]->closed; });
}

TEST_F(WorkerProcessTest, StopEndsAtThePushBoundary) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->worker().tell(StopJob{JobId(5), Generation(1)});
  open_gate();
  const WorkerFinished finished = chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(shards_.versions[0], finished.steps);
  EXPECT_EQ(shards_.versions[1], finished.steps);
}

TEST_F(WorkerProcessTest, MessagesOfAnotherGenerationAreIgnored) {
  start_worker();
  lend_all();
  chief_->worker().tell(open_job());
  chief_->wait_for<JobOpened>();
  chief_->worker().tell(StartJob{JobId(5), Generation(2)});
  chief_->worker().tell(StartJob{JobId(4), Generation(1)});
  chief_->worker().tell(CloseJob{JobId(4), Generation(1), ""});
  EXPECT_EQ(chief_->wait_for<JobClosed>().job, JobId(4)) << "unknown jobs are closed all the same";
  EXPECT_TRUE(chief_->heard<LeaseRequest>().empty()) << "nothing has started";
  chief_->worker().tell(StartJob{JobId(5), Generation(1)});
  chief_->wait_for<WorkerFinished>();
}

TEST_F(WorkerProcessTest, ChiefThatComesBackHearsWhatItMissed) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  // The worker needs two leases. It asks for the second one only when the chief is back.
  chief_->worker().connection->close();
  open_gate();
  run_until(loop_, [this] { return chief_->peers.size() > 1; });
  EXPECT_EQ(chief_->hellos.back().job, JobId(5));
  EXPECT_EQ(chief_->hellos.back().journal, JournalId(77));
  EXPECT_EQ(chief_->wait_for<WorkerFinished>().steps, 13U);
  EXPECT_EQ(shards_.values, expected());
}

TEST_F(WorkerProcessTest, WhatTheChiefAsksTwiceIsAnsweredTwiceAndDoneOnce) {
  start_worker();
  lend_all();
  const auto reconnect = [this] {
    const std::size_t before = chief_->peers.size();
    chief_->worker().connection->close();
    run_until(loop_, [&] { return chief_->peers.size() > before; });
    chief_->messages.clear();
  };
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  chief_->wait_for<JobDescribed>();
  reconnect();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  EXPECT_EQ(chief_->wait_for<JobDescribed>().train_records, kRecords);
  chief_->worker().tell(open_job());
  chief_->wait_for<JobOpened>();
  reconnect();
  chief_->worker().tell(open_job());
  chief_->wait_for<JobOpened>();
  EXPECT_EQ(shards_.hellos, 2U) << "one channel to each shard, opened once";
  for (int i = 0; i < 2; ++i) chief_->worker().tell(StartJob{JobId(5), Generation(1)});
  EXPECT_EQ(chief_->wait_for<WorkerFinished>().steps, 13U);
  reconnect();
  EXPECT_EQ(chief_->wait_for<WorkerFinished>().steps, 13U);
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  const Evaluated first = chief_->wait_for<Evaluated>();
  reconnect();
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  const Evaluated again = chief_->wait_for<Evaluated>();
  EXPECT_TRUE(again.final);
  EXPECT_EQ(again.examples, first.examples);
  EXPECT_EQ(again.parameters_hash, first.parameters_hash);
  EXPECT_EQ(shards_.values, expected());
}

TEST_F(WorkerProcessTest, FailureIsToldAgainWhenTheChiefIsBack) {
  shards_.answer_hello = [](Peer& peer, const ChannelHello&) {
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kNoPermission, "the token is wrong"}));
    return true;
  };
  start_worker();
  chief_->worker().tell(open_job());
  chief_->wait_for<TaskFailed>();
  chief_->worker().connection->close();
  run_until(loop_, [this] { return chief_->peers.size() > 1; });
  chief_->messages.clear();
  EXPECT_NE(chief_->wait_for<TaskFailed>().reason.find("token"), std::string::npos);
}

TEST_F(WorkerProcessTest, ClosingAnOlderJobDoesNotHurryTheOneThatEvaluates) {
  start_worker();
  lend_all();
  open_and_start();
  chief_->wait_for<WorkerFinished>();
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  chief_->worker().tell(CloseJob{JobId(4), Generation(1), "long ago"});
  EXPECT_EQ(chief_->wait_for<Evaluated>().examples, 20U);
  EXPECT_EQ(chief_->wait_for<JobClosed>().job, JobId(4));
}

TEST_F(WorkerProcessTest, ChiefWithAnotherJournalMakesTheWorkerDropItsJob) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->journal = JournalId(78);
  chief_->worker().connection->close();
  run_until(loop_, [this] { return chief_->peers.size() > 1; });
  open_gate();
  run_until(loop_, [this] { return shards_.peers[0]->closed && shards_.peers[1]->closed; });
  run_until(loop_, [this] {
    const auto beats = chief_->heard<Heartbeat>();
    return !beats.empty() && beats.back().job == JobId();
  });
  EXPECT_TRUE(chief_->heard<WorkerFinished>().empty());
}

TEST_F(WorkerProcessTest, RefusalByTheChiefEndsTheProcess) {
  chief_->answer_hello = [](Peer& peer) {
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kConfig, "this is cluster other"}));
    return true;
  };
  start_worker();
  run_until(loop_, [this] { return refused_.has_value(); });
  EXPECT_EQ(refused_->code, ErrorCode::kConfig);
  EXPECT_NE(refused_->message.find("cluster other"), std::string::npos);
}

TEST_F(WorkerProcessTest, MessageThatMakesNoSenseIsDropped) {
  start_worker();
  chief_->wait_for<Heartbeat>();
  const std::vector<std::byte> nonsense(24, std::byte{0xff});
  chief_->worker().send(wire::FrameType::kControl, nonsense);
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  EXPECT_EQ(chief_->wait_for<JobDescribed>().train_records, kRecords);
  EXPECT_EQ(chief_->peers.size(), 1U);
}

TEST_F(WorkerProcessTest, ProbeOfItsAddressIsAnswered) {
  start_worker();
  chief_->wait_for<Heartbeat>();
  Hello hello;
  hello.cluster = "test";
  hello.who = ClientHello{"somebody"};
  const auto bytes = wire::encode(hello);
  transport::OutgoingFrame frame;
  frame.header.type = wire::FrameType::kHello;
  frame.control = bytes;
  std::unique_ptr<Peer> probe;
  std::optional<wire::FrameType> answer;
  transport_->dial(loop_, chief_->hellos[0].address, frame, std::chrono::seconds(5),
                   [&](Result<std::unique_ptr<transport::Connection>> connection) {
                     ASSERT_TRUE(connection) << connection.error().message;
                     probe = std::make_unique<Peer>(
                         std::move(*connection), [&](Peer&, const wire::FrameHeader& header, wire::Bytes, wire::Bytes) {
                           answer = header.type;
                         });
                   });
  run_until(loop_, [&] { return answer.has_value(); });
  EXPECT_EQ(*answer, wire::FrameType::kRefused);
}

}  // namespace
}  // namespace disttrain::workerd
