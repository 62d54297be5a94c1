// The keys of cluster.toml, one row each.
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
  const auto fits = [](const std::string& text) { return text == "cpu" || text.starts_with("pjrt:/"); };
  Field field = text_of(to, "\"cpu\", or \"pjrt:\" and the absolute path of a PJRT plugin", fits);
  const Field later = choice<std::string>(to, {}, {"cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3"});
  const auto read = [any = field.read, cuda = later.read](const TomlValue& value, const std::string& path,
                                                          Reading& reading) {
    const auto* text = value.as<std::string>();
    (text != nullptr && text->starts_with("cuda") ? cuda : any)(value, path, reading);
  };
  field.read = read;
  return field;
}

Keys ps_keys(PsConfig& ps) {
  return {
      {"address", required(address(ps.address)), "host:port where the ps listens and other tasks reach it"},
      {"shards", integer(ps.shards, 0, 256), "number of shard threads; 0 = one per core that psd may use"},
      {"memory", size_or_auto(ps.memory_bytes), "the most memory that the ps may use"},
      {"cores", integers(ps.cores, 0, kMaxCore), "the cores that psd runs on; [] = the system chooses"},
  };
}

Keys worker_keys(WorkerConfig& worker) {
  return {
      {"address", required(address(worker.address)),
       "host:port where the worker listens; it also identifies the worker"},
      {"threads", integer(worker.threads, 1, 1024), "compute threads"},
      {"cores", integers(worker.cores, 0, kMaxCore), "the cores that workerd runs on; [] = the system chooses"},
      {"device", device(worker.device), "compute device"},
  };
}

Keys evaluator_keys(WorkerConfig& evaluator) {
  return {
      {"address", required(address(evaluator.address)),
       "host:port where the evaluator listens; it also identifies the evaluator"},
      {"threads", integer(evaluator.threads, 1, 1024), "compute threads"},
      {"cores", integers(evaluator.cores, 0, kMaxCore),
       "the cores that the evaluator runs on; [] = the system chooses"},
      {"device", device(evaluator.device), "compute device"},
  };
}

Keys chief_keys(ChiefConfig& chief) {
  return {
      {"address", address(chief.address), "host:port where the chief listens and all other tasks connect"},
      {"state_directory", text(chief.state_directory), "folder of the chief's journal"},
      {"max_queued_jobs", integer(chief.max_queued_jobs, 1, 100'000), "the most jobs that may wait in the queue"},
  };
}

Keys transport_keys(TransportConfig& transport) {
  return {
      {"kind",
       choice<std::string>(transport.kind, {{"auto", "auto"}, {"tcp", "tcp"}, {"shm", "shm"}, {"rdma", "rdma"}}),
       "how tensors travel"},
      {"credits", integer(transport.credits, 1, 64), "the most frames that a channel may have unanswered"},
      {"max_connections", integer(transport.max_connections, 0, 1'000'000),
       "the most accepted connections that a task has open at the same time; it closes further ones; 0 = twice as many "
       "as the cluster needs, and 1024 more"},
      {"hello_timeout", duration(transport.hello_timeout, 10ms, 1h),
       "a new connection is closed if its hello doesn't come within this time"},
      {"congestion_control", text(transport.congestion_control),
       "TCP congestion control; \"\" = cubic between tasks of one host, else the system's choice"},
  };
}

Keys heartbeat_keys(HeartbeatConfig& heartbeat) {
  return {{"timeout", duration(heartbeat.timeout, 100ms, 1h),
           "a task that has sent nothing for this time is silent; all other time limits derive from this one"}};
}

// Accepts "" (no metrics), a host, and "HOST:0" or "[::1]:0" for any free port.
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
  return {{"listen",
           text_of(metrics.listen,
                   "\"\", a host such as \"127.0.0.1\" (the port is the task's port + 1000), or a host with \":0\" "
                   "(any free port)",
                   is_metrics_listen),
           "where each daemon serves its metrics; \"\" = the daemons serve no metrics"}};
}

// The metrics port of the task with this address.
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
       "auto: journal if stderr is systemd's journal, else text"},
      {"rate", integer(log.rate, 1, kAnyRate), "the most lines per second from one place in the code"},
  };
}

Keys identity_keys(ClusterConfig& cluster) {
  return {
      {"name", text_of(cluster.name, "a name of at most 64 letters, digits, \"-\", \"_\" and \".\"", is_cluster_name),
       "the chief refuses tasks and commands that name another cluster"},
      {"allow_unlisted_workers", boolean(cluster.allow_unlisted_workers),
       "true: workers that the file doesn't name may join"},
  };
}

}  // namespace

Keys cluster_keys(ClusterConfig& cluster) {
  return {
      {"cluster", section(identity_keys(cluster)), ""},
      {"chief", section(chief_keys(cluster.chief)), ""},
      {"ps", sections<PsConfig>(cluster.ps, ps_keys), ""},
      {"worker", sections<WorkerConfig>(cluster.workers, worker_keys), ""},
      {"evaluator", sections<WorkerConfig>(cluster.evaluators, evaluator_keys), ""},
      {"transport", section(transport_keys(cluster.transport)), ""},
      {"heartbeat", section(heartbeat_keys(cluster.heartbeat)), ""},
      {"metrics", section(metrics_keys(cluster.metrics)), ""},
      {"log", section(log_keys(cluster.log)), ""},
  };
}

void check_cluster_rules(const ClusterConfig& cluster, Reading& reading) {
  if (cluster.ps.empty())
    reading.refuse("ps", "there is no [[ps]] section; expected at least one, each with its address");
  if (cluster.workers.empty())
    reading.refuse("worker", "there is no [[worker]] section; expected at least one, each with its address");
  if (cluster.workers.size() > kMaxWorkers)
    reading.refuse("worker", "there are " + std::to_string(cluster.workers.size()) +
                                 " [[worker]] sections; expected at most " + std::to_string(kMaxWorkers));
  if (cluster.evaluators.size() > kMaxEvaluators)
    reading.refuse("evaluator", "there are " + std::to_string(cluster.evaluators.size()) +
                                    " [[evaluator]] sections; expected at most " + std::to_string(kMaxEvaluators));
  if (cluster.ps.size() > kMaxPs)
    reading.refuse("ps", "there are " + std::to_string(cluster.ps.size()) + " [[ps]] sections; expected at most " +
                             std::to_string(kMaxPs));
  std::map<std::string, std::string> owners = {{cluster.chief.address, "chief"}};
  const auto claim = [&owners, &reading](const std::string& address, const std::string& key) {
    if (address.empty()) return;  // missing: already a problem
    const auto [owner, is_new] = owners.emplace(address, key);
    if (!is_new)
      reading.refuse(key + ".address", key + ".address is \"" + address + "\", which is already the address of " +
                                           owner->second + "; give each task its own address");
  };
  for (std::size_t i = 0; i < cluster.ps.size(); ++i) claim(cluster.ps[i].address, "ps[" + std::to_string(i) + "]");
  for (std::size_t i = 0; i < cluster.workers.size(); ++i)
    claim(cluster.workers[i].address, "worker[" + std::to_string(i) + "]");
  for (std::size_t i = 0; i < cluster.evaluators.size(); ++i)
    claim(cluster.evaluators[i].address, "evaluator[" + std::to_string(i) + "]");
  if (cluster.metrics.listen.empty() || cluster.metrics.listen.ends_with(":0")) return;
  for (const auto& [address, key] : owners) {
    if (metrics_port(address) > kMaxPort)
      reading.refuse(key + ".address", key + ".address is \"" + address + "\", so its metrics port would be " +
                                           std::to_string(metrics_port(address)) +
                                           " (its own port + 1000), which doesn't exist; expected a port of at most " +
                                           std::to_string(kMaxPort - kMetricsPortDistance) +
                                           ", or metrics.listen = \"\"");
    const auto owner = owners.find(metrics_place(address));
    if (owner != owners.end())
      reading.refuse(owner->second + ".address", owner->second + ".address is \"" + owner->first + "\", where " + key +
                                                     " serves its metrics (at its own port + 1000); choose a port "
                                                     "that no other task uses");
  }
}

}  // namespace disttrain::config
