// `up` itself binds free ports for its daemons, writes the addresses into the cluster.toml that it generates, and
// passes the sockets to the daemons as systemd does (LISTEN_FDS). The alternative was port 0 in the file, so that each
// daemon chooses its port. With passed sockets no port is chosen twice, every verb finds the addresses in the file, and
// operators can use systemd's socket activation.
#include "tools/disttrain/up/local_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "common/config/reader/reader.h"
#include "common/daemon/host.h"
#include "tools/disttrain/up/program_path.h"
#include "tools/disttrain/up/run_folder.h"
#include "transport/factory/factory.h"
#include "transport/tcp/socket.h"

namespace disttrain::cli {

namespace fs = std::filesystem;

namespace {

const char* program_of(Role role) {
  if (role == Role::kPs) return "psd";
  return role == Role::kChief ? "chiefd" : "workerd";
}

// "worker/1" -> "worker-1.log".
std::string log_name(TaskId task) {
  return to_string(task.role) + "-" + std::to_string(task.index) + ".log";
}

// Returns the text of a cluster file for an `up` that was started without one. The sockets with these
// `addresses` are bound already.
std::string generated_toml(const std::string& name, const fs::path& folder, const std::vector<std::string>& addresses,
                           std::uint32_t ps, std::uint32_t workers) {
  std::string text = "# Made by disttrain up.\n[cluster]\nname = \"" + name + "\"\n[chief]\naddress = \"" +
                     addresses[0] + "\"\nstate_directory = \"" + (folder / "chief").string() +
                     "\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n";
  for (std::size_t i = 1; i < addresses.size(); ++i) {
    const std::string section = i <= ps ? "ps" : i <= ps + workers ? "worker" : "evaluator";
    text += "[[" + section + "]]\n" + (i <= ps ? "" : "threads = 1\n") + "address = \"" + addresses[i] + "\"\n";
  }
  return text;
}

// Retries while the port is in use. If another `up` was killed just now, its daemons hold their ports until the kernel
// has closed their sockets.
Result<ListeningSocket> bind_patiently(const std::string& address) {
  constexpr std::chrono::seconds kPatience(1);
  constexpr std::chrono::milliseconds kPause(10);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  auto listener = bind_listener(address);
  while (!listener && listener.error().code == ErrorCode::kUnavailable && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    listener = bind_listener(address);
  }
  return listener;
}

std::vector<TaskId> tasks_of(std::size_t ps, std::size_t workers, std::size_t evaluators) {
  std::vector<TaskId> tasks = {TaskId{Role::kChief, 0}};
  for (std::uint32_t i = 0; i < ps; ++i) tasks.push_back(TaskId{Role::kPs, i});
  for (std::uint32_t i = 0; i < workers; ++i) tasks.push_back(TaskId{Role::kWorker, i});
  for (std::uint32_t i = 0; i < evaluators; ++i) tasks.push_back(TaskId{Role::kEvaluator, i});
  return tasks;
}

}  // namespace

LocalCluster::LocalCluster(asio::io_context& loop, RunFolder folder, const LocalClusterOptions& options)
    : run_folder_(std::move(folder)), folder_(run_folder_.path()), supervisor_(loop, options.restarts, options.say) {}

Result<std::unique_ptr<LocalCluster>> LocalCluster::start(asio::io_context& loop, const LocalClusterOptions& options) {
  auto folder = RunFolder::make();
  if (!folder) return tl::unexpected<Error>(std::move(folder.error()));
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(loop, std::move(*folder), options));
  if (Status made = cluster->make_config(options); !made) return tl::unexpected<Error>(std::move(made.error()));
  if (cluster->own_tasks_.back().role != Role::kChief)  // the chief itself only uses TCP
    if (Status found = transport::check_devices(cluster->config_.transport); !found)
      return tl::unexpected<Error>(std::move(found.error()));
  if (cluster->own_tasks_.front().role == Role::kChief)
    if (Status started = cluster->spawn(0); !started) return tl::unexpected<Error>(std::move(started.error()));
  auto registration =
      Registration::make(options.name + "-" + std::to_string(getpid()), config::cluster_toml(cluster->config_));
  if (!registration) return tl::unexpected<Error>(std::move(registration.error()));
  cluster->registration_.emplace(std::move(*registration));
  return cluster;
}

Status LocalCluster::make_config(const LocalClusterOptions& options) {
  if (!options.cluster_file.empty()) {
    auto config = config::read_cluster(options.cluster_file);
    if (!config) return tl::unexpected<Error>(std::move(config.error()));
    config_ = std::move(*config);
    cluster_file_ = fs::absolute(options.cluster_file).string();
    for (TaskId task : tasks_of(config_.ps.size(), config_.workers.size(), config_.evaluators.size())) {
      const Result<bool> is_own = daemon::is_own_address(address_of(config_, task));
      if (!is_own.has_value())
        return fail(is_own.error().code, options.cluster_file + ": " + to_string(task) + ": " + is_own.error().message +
                                             "; correct this address, or add its host name to DNS or /etc/hosts");
      if (*is_own) own_tasks_.push_back(task);
    }
    if (own_tasks_.empty())
      return fail(ErrorCode::kConfig, options.cluster_file + ": none of its addresses belongs to this host (" +
                                          daemon::host_name() + "), so there is nothing to start here");
    return bind_all();
  }
  own_tasks_ = tasks_of(options.ps, options.workers, options.evaluators);
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < own_tasks_.size(); ++i) {
    auto listener = bind_listener("127.0.0.1:0");
    if (!listener) return tl::unexpected<Error>(std::move(listener.error()));
    addresses.push_back(listener->address);
    listeners_.push_back(std::move(*listener));
  }
  auto config = config::parse_cluster(generated_toml(options.name, folder_, addresses, options.ps, options.workers),
                                      "cluster.toml", options.sets);
  if (!config) return tl::unexpected<Error>(std::move(config.error()));
  config_ = std::move(*config);
  cluster_file_ = (folder_ / "cluster.toml").string();
  if (!(std::ofstream(cluster_file_) << config::cluster_toml(config_)).flush())
    return fail(ErrorCode::kNoPermission, "can't write " + cluster_file_ + ": " + transport::system_words(errno) +
                                              "; is the disk full, or `ulimit -f` too low? TMPDIR can name a folder on "
                                              "another disk");
  return {};
}

std::uint32_t LocalCluster::own_workers() const {
  return static_cast<std::uint32_t>(
      std::count_if(own_tasks_.begin(), own_tasks_.end(), [](TaskId task) { return task.role == Role::kWorker; }));
}

Status LocalCluster::bind_all() {
  for (TaskId task : own_tasks_) {
    auto listener = bind_patiently(address_of(config_, task));
    if (!listener)
      return tl::unexpected<Error>(Error{listener.error().code, to_string(task) + ": " + listener.error().message});
    listeners_.push_back(std::move(*listener));
  }
  return {};
}

Status LocalCluster::start_tasks() {
  for (std::size_t i = 0; i < own_tasks_.size(); ++i)
    if (own_tasks_[i].role != Role::kChief)
      if (Status started = spawn(i); !started) return started;
  return {};
}

Status LocalCluster::spawn(std::size_t i) {
  const TaskId task = own_tasks_[i];
  std::vector<std::string> arguments = {"--cluster", cluster_file_};
  if (task.role == Role::kEvaluator) arguments.insert(arguments.begin(), {"--role", "evaluator"});
  if (task.role != Role::kChief) {
    arguments.push_back("--index");
    arguments.push_back(std::to_string(task.index));
  }
  return supervisor_.start(
      DaemonProgram{task, program_path(program_of(task.role)), arguments, folder_ / log_name(task)},
      std::move(listeners_[i]));
}

LocalCluster::~LocalCluster() {
  constexpr Duration kEnough = std::chrono::seconds(1);
  stop(kEnough);
}

}  // namespace disttrain::cli
