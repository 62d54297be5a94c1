// A whole worker except its process. The main loop, the step thread and the sockets are real; the engine is fake. The
// test plays the chief and the shards.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/config/reader/reader.h"
#include "engine/fake_engine.h"
#include "tests/workerd/exchange/fake_peers.h"
#include "workerd/worker.h"

namespace disttrain::workerd {

inline constexpr std::uint64_t kRecords = 50;

inline FakeModel fake_model() {
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

}  // namespace disttrain::workerd
