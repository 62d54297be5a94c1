// cluster.toml, row by row.
#include <algorithm>
#include <limits>
#include <map>

#include "common/config/reader/keys.h"

namespace disttrain::config {

using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kMaxCore = 4095;
constexpr int kMaxPort = 65535;
constexpr std::size_t kMaxPs = 1024;
constexpr std::int64_t kAnyRate = std::numeric_limits<std::uint32_t>::max();

bool is_cluster_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string::npos;
}

Field device(std::string& to) {
  return choice<std::string>(to, {{"cpu", "cpu"}}, {"cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3"});
}

Keys ps_keys(PsConfig& ps) {
  return {
      {"address", required(address(ps.address)), "host:port where it listens and others reach it"},
      {"shards", integer(ps.shards, 0, 256), "threads it offers; 0 = one per core given"},
      {"memory", size_or_auto(ps.memory_bytes), "memory that it may use"},
      {"cores", integers(ps.cores, 0, kMaxCore), "pin to these; [] = the system's choice"},
  };
}

Keys worker_keys(WorkerConfig& worker) {
  return {
      {"address", required(address(worker.address)), "host:port where it listens and others reach it"},
      {"threads", integer(worker.threads, 1, 1024), "compute threads"},
      {"cores", integers(worker.cores, 0, kMaxCore), "pin to these; [] = the system's choice"},
      {"device", device(worker.device), "compute device"},
  };
}

Keys chief_keys(ChiefConfig& chief) {
  return {
      {"address", address(chief.address), "host:port where it listens and others reach it"},
      {"state_directory", text(chief.state_directory), "folder of its journal"},
      {"max_queued_jobs", integer(chief.max_queued_jobs, 1, 100'000), "more are refused"},
  };
}

Keys transport_keys(TransportConfig& transport) {
  return {
      {"kind", choice<std::string>(transport.kind, {{"auto", "auto"}, {"tcp", "tcp"}}, {"shm", "rdma"}),
       "how tensors travel"},
      {"credits", integer(transport.credits, 1, 64), "frames outstanding per channel"},
      {"max_connections", integer(transport.max_connections, 1, 1'000'000), "per task; more are closed at once"},
      {"hello_timeout", duration(transport.hello_timeout, 10ms, 1h), "a peer that sends no hello is closed after this"},
      {"congestion_control", text(transport.congestion_control),
       "of TCP; \"\" = the system's, between tasks of one host cubic"},
  };
}

Keys heartbeat_keys(HeartbeatConfig& heartbeat) {
  return {
      {"timeout", duration(heartbeat.timeout, 100ms, 1h), "a task is silent after this; all other times are derived"}};
}

// A host or "", or "host:0" and "[::1]:0" for any free port.
bool is_metrics_listen(const std::string& listen) {
  if (listen.empty()) return true;
  const bool is_bracketed = listen.front() == '[';
  if (is_bracketed && !listen.ends_with("]:0")) return false;
  const std::string host = is_bracketed ? listen.substr(1, listen.size() - 4)
                           : listen.ends_with(":0") && listen.find(':') == listen.size() - 2
                               ? listen.substr(0, listen.size() - 2)
                               : listen;
  const auto colons = std::count(host.begin(), host.end(), ':');
  return !host.empty() && colons != 1 && host.find_first_of("[]/ \t") == std::string::npos;
}

Keys metrics_keys(MetricsConfig& metrics) {
  return {
      {"listen",
       text_of(metrics.listen,
               "a host such as \"127.0.0.1\" (the port is the task's + 1000), one with \":0\" (any free port), or \"\"",
               is_metrics_listen),
       "where each daemon serves its metrics; \"\" = nowhere"}};
}

// Metrics port of the task with this address.
int metrics_port(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1)) + kMetricsPortDistance;
}

std::string metrics_place(const std::string& address) {
  return address.substr(0, address.rfind(':') + 1) + std::to_string(metrics_port(address));
}

Keys log_keys(LogConfig& log) {
  return {
      {"level",
       choice<std::string>(log.level, {{"debug", "debug"}, {"info", "info"}, {"warn", "warn"}, {"error", "error"}}),
       "lowest level that is written"},
      {"format",
       choice<std::string>(log.format, {{"auto", "auto"}, {"text", "text"}, {"json", "json"}, {"journal", "journal"}}),
       "auto: the journal where stderr goes there, else text"},
      {"rate", integer(log.rate, 1, kAnyRate), "lines per second and place"},
  };
}

Keys identity_keys(ClusterConfig& cluster) {
  return {
      {"name", text_of(cluster.name, "a name of letters, digits, \"-\", \"_\" and \".\", at most 64", is_cluster_name),
       "tasks of another one are refused"},
      {"allow_unlisted_workers", boolean(cluster.allow_unlisted_workers), "elastic: others may join as workers"},
  };
}

}  // namespace

Keys cluster_keys(ClusterConfig& cluster) {
  return {
      {"cluster", section(identity_keys(cluster)), ""},
      {"chief", section(chief_keys(cluster.chief)), ""},
      {"ps", sections<PsConfig>(cluster.ps, ps_keys), ""},
      {"worker", sections<WorkerConfig>(cluster.workers, worker_keys), ""},
      {"evaluator", not_in_this_version(), ""},
      {"transport", section(transport_keys(cluster.transport)), ""},
      {"heartbeat", section(heartbeat_keys(cluster.heartbeat)), ""},
      {"metrics", section(metrics_keys(cluster.metrics)), ""},
      {"log", section(log_keys(cluster.log)), ""},
  };
}

void check_cluster_rules(const ClusterConfig& cluster, Reading& reading) {
  if (cluster.ps.empty()) reading.refuse("ps", "there is no [[ps]]; expected at least one, each with its address");
  if (cluster.workers.empty())
    reading.refuse("worker", "there is no [[worker]]; expected at least one, each with its address");
  if (cluster.workers.size() > kMaxWorkers)
    reading.refuse("worker", "there are " + std::to_string(cluster.workers.size()) + " [[worker]]; expected at most " +
                                 std::to_string(kMaxWorkers));
  if (cluster.ps.size() > kMaxPs)
    reading.refuse(
        "ps", "there are " + std::to_string(cluster.ps.size()) + " [[ps]]; expected at most " + std::to_string(kMaxPs));
  std::map<std::string, std::string> owners = {{cluster.chief.address, "chief"}};
  const auto claim = [&owners, &reading](const std::string& address, const std::string& key) {
    if (address.empty()) return;  // missing: already a problem
    const auto [owner, is_new] = owners.emplace(address, key);
    if (!is_new)
      reading.refuse(key + ".address", key + ".address is \"" + address + "\", which is already the address of " +
                                           owner->second + "; expected one of its own for each task");
  };
  for (std::size_t i = 0; i < cluster.ps.size(); ++i) claim(cluster.ps[i].address, "ps[" + std::to_string(i) + "]");
  for (std::size_t i = 0; i < cluster.workers.size(); ++i)
    claim(cluster.workers[i].address, "worker[" + std::to_string(i) + "]");
  if (cluster.metrics.listen.empty() || cluster.metrics.listen.ends_with(":0")) return;
  for (const auto& [address, key] : owners) {
    if (metrics_port(address) > kMaxPort)
      reading.refuse(key + ".address", key + ".address is \"" + address + "\", so that its metrics are at port " +
                                           std::to_string(metrics_port(address)) +
                                           " (its own + 1000), which doesn't exist; expected a port of at most " +
                                           std::to_string(kMaxPort - kMetricsPortDistance) +
                                           ", or metrics.listen = \"\"");
    const auto owner = owners.find(metrics_place(address));
    if (owner != owners.end())
      reading.refuse(owner->second + ".address", owner->second + ".address is \"" + owner->first + "\", where " + key +
                                                     " serves its metrics (at its own port + 1000); expected a port "
                                                     "that no other task needs");
  }
}

}  // namespace disttrain::config
