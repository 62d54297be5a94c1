#include "tools/disttrain/bench/ps_cluster.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include "chiefd/core/placement.h"
#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"
#include "common/daemon/random.h"
#include "tools/disttrain/log_tail.h"
#include "tools/disttrain/up/program_path.h"
#include "tools/disttrain/up/run_folder.h"
#include "transport/control_link.h"
#include "transport/wire/codec.h"

namespace disttrain::cli {

namespace {

// A long time, so that heartbeats don't disturb a measurement.
constexpr Duration kHeartbeatTimeout = std::chrono::seconds(60);
constexpr Duration kPoll = std::chrono::milliseconds(50);
constexpr std::size_t kShownLogLines = 10;

std::string cluster_text(const std::string& chief, const std::vector<ListeningSocket>& ps,
                         const TransportConfig& transport, const std::vector<std::uint32_t>& cores) {
  std::string text = "# Made by disttrain bench ps.\n[cluster]\nname = \"bench\"\n";
  text += "[chief]\naddress = \"" + chief + "\"\n[metrics]\nlisten = \"\"\n[log]\nlevel = \"warn\"\n";
  text += "[transport]\nkind = \"" + transport.kind + "\"\n";
  for (std::size_t i = 0; i < ps.size(); ++i) {
    text += "[[ps]]\naddress = \"" + ps[i].address + "\"\nshards = 1\n";
    if (!cores.empty()) text += "cores = [" + std::to_string(cores[i]) + "]\n";
  }
  text += "[[worker]]\naddress = \"127.0.0.1:1\"\n";  // a cluster file names a worker; nobody uses this address
  return text;
}

}  // namespace

// The control connection of one ps.
class PsCluster::Ps final : public transport::ControlHandler {
 public:
  Ps(PsCluster& cluster, TaskHello hello, std::unique_ptr<transport::Connection> connection)
      : cluster_(cluster), hello_(std::move(hello)), link_(std::move(connection), *this) {
    Welcome welcome;
    welcome.term = Term(1);
    welcome.journal = JournalId(1);
    welcome.heartbeat_timeout = kHeartbeatTimeout;
    link_.answer(welcome);
  }

  const TaskHello& hello() const { return hello_; }
  bool has_shards_of(JobId job) const { return created_ == job; }

  Status create(const CreateShards& order) { return link_.send(order); }

 private:
  void on_answer(const wire::HelloAnswer&) override {}
  void on_message(wire::ControlMessage message) override {
    if (const auto* beat = std::get_if<Heartbeat>(&message))
      static_cast<void>(link_.send(HeartbeatAnswer{Term(1), kHeartbeatTimeout, beat->clock, daemon::now()}));
    if (const auto* created = std::get_if<ShardsCreated>(&message)) created_ = created->job;
    if (const auto* failed = std::get_if<TaskFailed>(&message))
      cluster_.failure_ = Error{failed->code, to_string(hello_.member.task) + " failed: " + failed->reason};
  }
  void on_closed(const Error&) override {}  // the supervisor sees the end of the process

  PsCluster& cluster_;
  const TaskHello hello_;
  JobId created_;
  transport::ControlLink link_;
};

PsCluster::PsCluster(asio::io_context& loop, transport::Transport& transport, RunFolder folder, std::string any_port,
                     IsInterrupted is_interrupted)
    : loop_(loop),
      transport_(transport),
      run_folder_(std::move(folder)),
      folder_(run_folder_.path()),
      any_port_(std::move(any_port)),
      is_interrupted_(std::move(is_interrupted)),
      daemons_(loop, false, [](const std::string&) {}) {}

PsCluster::~PsCluster() {
  daemons_.stop(Duration::zero());
}

Result<std::unique_ptr<PsCluster>> PsCluster::start(asio::io_context& loop, transport::Transport& transport,
                                                    const TransportConfig& config, const std::string& address,
                                                    std::uint32_t ps, const std::vector<std::uint32_t>& cores,
                                                    IsInterrupted is_interrupted) {
  auto folder = RunFolder::make();
  if (!folder) return tl::unexpected<Error>(folder.error());
  const std::string any_port = (address.find(':') == std::string::npos ? address : '[' + address + ']') + ":0";
  std::unique_ptr<PsCluster> cluster(
      new PsCluster(loop, transport, std::move(*folder), any_port, std::move(is_interrupted)));
  if (Status listens = cluster->listen(); !listens) return tl::unexpected<Error>(listens.error());
  if (Status spawned = cluster->spawn(config, ps, cores); !spawned) return tl::unexpected<Error>(spawned.error());
  const Status registered = cluster->run_until([&] { return cluster->ps_.size() == ps; });
  if (!registered) return tl::unexpected<Error>(registered.error());
  return cluster;
}

Status PsCluster::listen() {
  auto listener = transport_.listen(
      loop_, any_port_, {}, [this](std::unique_ptr<transport::Arrival> arrival) { on_arrival(std::move(arrival)); });
  if (!listener) return tl::unexpected<Error>(listener.error());
  listener_ = std::move(*listener);
  return {};
}

Status PsCluster::spawn(const TransportConfig& transport, std::uint32_t ps, const std::vector<std::uint32_t>& cores) {
  std::vector<ListeningSocket> sockets;
  for (std::uint32_t i = 0; i < ps; ++i) {
    auto socket = bind_listener(any_port_);
    if (!socket) return tl::unexpected<Error>(socket.error());
    sockets.push_back(std::move(*socket));
  }
  auto config =
      config::parse_cluster(cluster_text(listener_->address(), sockets, transport, cores), "cluster.toml", {});
  if (!config) return tl::unexpected<Error>(config.error());
  config_ = std::move(*config);
  const std::filesystem::path file = folder_ / "cluster.toml";
  if (!(std::ofstream(file) << config::cluster_toml(config_)).flush())
    return fail(ErrorCode::kNoPermission, "can't write " + file.string() + "; is the disk full?");
  for (std::uint32_t i = 0; i < ps; ++i) {
    const std::string index = std::to_string(i);
    const Status started = daemons_.start(DaemonProgram{TaskId{Role::kPs, i},
                                                        program_path("psd"),
                                                        {"--cluster", file.string(), "--index", index},
                                                        folder_ / ("ps-" + index + ".log")},
                                          std::move(sockets[i]));
    if (!started) return started;
  }
  return {};
}

void PsCluster::on_arrival(std::unique_ptr<transport::Arrival> arrival) {
  const Result<Hello> hello = transport::hello_of(*arrival);
  const TaskHello* task = hello ? std::get_if<TaskHello>(&hello->who) : nullptr;
  if (task == nullptr || hello->cluster != config_.name) return;  // which closes the connection
  ps_[task->member.task] = std::make_unique<Ps>(*this, *task, arrival->adopt(loop_));
}

Result<OpenShards> PsCluster::open(const ModelSpec& model, const TrainSection& train, const Roster& roster) {
  const auto shards = static_cast<std::uint32_t>(ps_.size());
  const auto layout = chiefd::place(model, Placement::kRoundRobin, shards);
  if (!layout) return tl::unexpected<Error>(layout.error());
  auto config = std::make_shared<JobConfig>();
  // A ps refuses a job without a model and data. It uses neither.
  config->job.name = "bench";
  config->model.builtin = "linear";
  config->model.layers = {1, 2};
  config->data.path = "/";
  config->data.files = "none";
  config->train = train;
  job_ = JobId(job_.value + 1);
  OpenShards open{job_, Generation(1), daemon::draw_number(), *layout, {}, roster};
  for (const auto& [task, ps] : ps_) open.owners.push_back(Owner{ps->hello().member, ps->hello().address});
  CreateShards order;
  order.job = open.job;
  order.generation = open.generation;
  order.token = open.token;
  order.config = config;
  order.layout = open.layout;
  order.owners = open.owners;
  order.roster = roster;
  order.places = static_cast<std::uint32_t>(roster.members.size());
  for (const auto& [task, ps] : ps_)
    if (Status sent = ps->create(order); !sent) return tl::unexpected<Error>(sent.error());
  const Status made = run_until([this] {
    return std::all_of(ps_.begin(), ps_.end(), [this](const auto& ps) { return ps.second->has_shards_of(job_); });
  });
  if (!made) return tl::unexpected<Error>(made.error());
  return open;
}

Status PsCluster::run_until(const std::function<bool()>& is_done) {
  while (!is_done()) {
    if (failure_) return tl::unexpected<Error>(*failure_);
    if (is_interrupted_()) return fail(ErrorCode::kTemporary, "interrupted");
    if (const EndedDaemon* down = daemons_.first_that_stays_down(); down != nullptr) {
      std::string message = described(*down);
      for (const std::string& line : last_lines(down->log, kShownLogLines)) message += "\n  | " + line;
      return fail(error_code_of(*down), message);
    }
    if (loop_.stopped()) loop_.restart();
    loop_.run_one_for(kPoll);
  }
  return {};
}

std::vector<pid_t> PsCluster::pids() const {
  std::vector<pid_t> pids;
  for (const auto& [task, ps] : ps_) pids.push_back(static_cast<pid_t>(ps->hello().pid));
  return pids;
}

}  // namespace disttrain::cli
