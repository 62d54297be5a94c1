// In the steady state, a worker allocates no memory for a step. This test counts the calls of operator new in the step
// thread of a whole worker, which works over real sockets with leases and two shards. It covers the core, the exchange,
// the codec, the transport, asio, and what the step thread calls in input. It doesn't count the main loop, the
// input thread, the fake engine, and the first steps. It also doesn't count work that is done once for each lease,
// roster or connection.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/config/reader/reader.h"
#include "engine/fake_engine.h"
#include "tests/counted_new.h"
#include "tests/workerd/exchange/fake_peers.h"
#include "workerd/worker.h"

bool disttrain::test::counts_thread(std::string_view name) {
  return name == "step";
}

namespace disttrain::workerd {
namespace {

using test::allocations;
using test::counting;
using test::is_exempt;

constexpr std::uint64_t kBatch = 4;
constexpr std::uint64_t kWarmUp = 100;
constexpr std::uint64_t kSteps = 300;
constexpr std::uint64_t kRecords = kBatch * (kWarmUp + kSteps + 50);

FakeModel fake_model() {
  return FakeModel{.variable_elements = {6, 10}, .input_elements = 2, .classes = 10, .reads_parameters = false};
}

class UncountedEngine final : public Engine {
 public:
  const ModelSpec& describe() const override { return engine_->describe(); }
  Status takes(Program program, std::uint64_t examples) const override { return engine_->takes(program, examples); }
  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    return engine_->open(layout, parameters, gradients);
  }
  Result<std::vector<float>> initial_values() override { return engine_->initial_values(); }
  void start(const EngineInput& input, EngineSink& sink) override {
    CountedSink counted(sink);
    is_exempt = true;
    engine_->start(input, counted);
    is_exempt = false;
  }
  void abort() override {}

 private:
  // What the engine calls is counted again.
  class CountedSink final : public EngineSink {
   public:
    explicit CountedSink(EngineSink& sink) : sink_(sink) {}
    void ready(std::uint64_t begin, std::uint64_t end) override {
      is_exempt = false;
      sink_.ready(begin, end);
      is_exempt = true;
    }
    void finished(const Result<EngineOutput>& output) override {
      is_exempt = false;
      sink_.finished(output);
      is_exempt = true;
    }

   private:
    EngineSink& sink_;
  };

  std::unique_ptr<Engine> engine_ = make_fake_engine(fake_model());
};

Layout two_shards() {
  Layout layout;
  layout.model = describe_fake(fake_model());
  layout.shards = 2;
  layout.variable_begins = {10, 0};
  layout.buckets = {Bucket{ShardId(0), 0, 0, 6}, Bucket{ShardId(1), 6, 0, 5}, Bucket{ShardId(0), 11, 6, 5}};
  return layout;
}

// A folder that is removed when this object is destroyed.
struct Folder {
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("worker_allocations_test." + std::to_string(getpid()));
};

// Counts the allocations of kSteps steps of a job with these further keys of [train].
void count_allocations(const std::string& more) {
  Folder folder;
  std::ofstream train(folder.path / "train.csv");
  for (std::uint64_t r = 0; r < kRecords; ++r) train << r % 7 << ",1," << r % 10 << "\n";
  train.close();

  asio::io_context loop;
  const std::unique_ptr<transport::Transport> transport = transport_of_steps();
  FakeShards shards(loop, two_shards());
  FakeChief chief(loop);
  LogConfig quiet;
  quiet.level = "error";
  daemon::Log log(TaskId{Role::kWorker, 0}, quiet);
  daemon::Startup startup;
  startup.cluster.name = "test";
  startup.cluster.chief.address = chief.address();
  startup.cluster.workers.push_back(WorkerConfig{"127.0.0.1:0", 1, {}, "cpu"});
  startup.task = TaskId{Role::kWorker, 0};
  startup.incarnation = Incarnation(42);
  startup.address = startup.listen_address = "127.0.0.1:0";
  const EngineFactory make_engine = [](const JobConfig&, const std::vector<ColumnSpec>&, Arena&,
                                       const EngineWorld&) -> Result<MadeEngine> {
    return MadeEngine{std::make_unique<UncountedEngine>(), 0, 0};
  };
  Worker worker(
      loop, *transport, log, startup, make_engine, [](const Error& why) { FAIL() << why.message; },
      [] { FAIL() << "a thread of an ended job stands still"; });
  ASSERT_TRUE(worker.start());
  run_until(loop, [&chief] { return !chief.peers.empty(); });

  bool is_lent = false;
  chief.on_message = [&is_lent](Peer& peer, const wire::ControlMessage& message) {
    if (!std::holds_alternative<LeaseRequest>(message) || std::exchange(is_lent, true)) return;
    Lease lease;
    lease.id = LeaseId(1);
    lease.positions = {Interval{0, kRecords}};
    peer.tell(LeaseGrant{JobId(5), Generation(1), lease, true});
  };
  std::uint64_t steps = 0;
  shards.intercept = [&](Peer& peer, const wire::FrameHeader& header) {
    if (header.type != wire::FrameType::kPush || peer.channel->shard != ShardId(1)) return false;
    if (++steps == kWarmUp) counting = true;
    if (steps == kWarmUp + kSteps) counting = false;
    return false;
  };
  OpenJob job;
  job.job = JobId(5);
  job.generation = Generation(1);
  job.token = 11;
  const std::string toml =
      "[job]\nname = \"t\"\n[model]\nbuiltin = \"mlp\"\nlayers = [2, 10]\n[data]\nformat = \"csv\"\npath = \"" +
      folder.path.string() + "\"\nfiles = \"train.csv\"\n[train]\nbatch_size = 4\nepochs = 1\n" + more;
  job.config = std::make_shared<const JobConfig>(config::read_job(toml).value());
  job.layout = shards.layout;
  job.owners = shards.owners();
  job.roster = Roster{RosterVersion(1), {Member{TaskId{Role::kWorker, 0}, Incarnation(42)}}};
  job.train_records = kRecords;
  chief.worker().tell(job);
  chief.wait_for<JobOpened>();
  chief.worker().tell(StartJob{JobId(5), Generation(1)});
  chief.wait_for<WorkerFinished>();
  EXPECT_EQ(steps, kRecords / kBatch);
  EXPECT_EQ(allocations.exchange(0), 0U) << "in " << kSteps << " steps";
}

TEST(WorkerAllocations, AStepCostsNoneInTheSteadyState) {
  count_allocations("");
}

TEST(WorkerAllocations, AStepCostsNoneWhileATraceIsRecorded) {
  count_allocations("profile_steps = [1, 1000]\n[checkpoint]\ndirectory = \"/c\"\n");
}

}  // namespace
}  // namespace disttrain::workerd
