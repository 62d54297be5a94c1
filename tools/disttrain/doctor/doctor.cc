// disttrain doctor [CLUSTER]: checks whether this host can run its tasks. Use it before they start, or when something
// is slow. It changes nothing. host.h and ports.h collect facts about the host; checks.h judges them.
#include <algorithm>
#include <asio/io_context.hpp>
#include <cmath>
#include <iostream>
#include <map>

#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"
#include "common/daemon/host.h"
#include "common/daemon/startup.h"
#include "common/metrics/process.h"
#include "common/timeouts.h"
#include "common/update/update_rule.h"
#include "tools/disttrain/doctor/checks.h"
#include "tools/disttrain/doctor/host.h"
#include "tools/disttrain/doctor/ports.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/model_of_job.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/up/runtime_folder.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

// The time limit for looking up all host names of a cluster file. If the name server doesn't answer, each name alone
// takes kHostPatience.
constexpr Duration kNamesPatience = 3 * kHostPatience;

// A host that the cluster file names, with its tasks.
struct Host {
  std::string name;
  HostName found;
  std::vector<TaskId> tasks;
};

struct Found {
  std::string file;  // path of the cluster file; "" = there is none
  std::optional<ClusterConfig> cluster;
  std::vector<Host> hosts;
  std::map<TaskId, PortAnswer> ports;

  bool has_own(Role role) const {
    for (const Host& host : hosts)
      if (host.found.is_own)
        for (const TaskId task : host.tasks)
          if (task.role == role) return true;
    return false;
  }
};

std::vector<TaskId> tasks_of(const ClusterConfig& cluster) {
  std::vector<TaskId> tasks = {{Role::kChief, 0}};
  for (std::uint32_t i = 0; i < cluster.ps.size(); ++i) tasks.push_back({Role::kPs, i});
  for (std::uint32_t i = 0; i < cluster.workers.size(); ++i) tasks.push_back({Role::kWorker, i});
  for (std::uint32_t i = 0; i < cluster.evaluators.size(); ++i) tasks.push_back({Role::kEvaluator, i});
  return tasks;
}

std::vector<Host> hosts_of(const ClusterConfig& cluster) {
  std::vector<Host> hosts;
  std::map<std::string, std::size_t> places;
  const Instant end = daemon::now() + kNamesPatience;
  for (const TaskId task : tasks_of(cluster)) {
    const std::string& address = address_of(cluster, task);
    const auto [place, is_new] = places.emplace(daemon::host_part(address), hosts.size());
    if (is_new) {
      HostName name{false, "",
                    "host name \"" + place->first + "\" wasn't looked up, because the name server is too slow"};
      if (daemon::now() < end) name = find_host(address);
      hosts.push_back({place->first, std::move(name), {}});
    }
    hosts[place->second].tasks.push_back(task);
  }
  return hosts;
}

// Connects to the ports of all tasks whose host name could be resolved, and asks who is there.
std::map<TaskId, PortAnswer> ask_ports(const ClusterConfig& cluster, const std::vector<Host>& hosts) {
  std::vector<TaskId> tasks;
  std::vector<std::string> addresses;
  for (const Host& host : hosts)
    for (const TaskId task : host.tasks)
      if (host.found.problem.empty()) {
        tasks.push_back(task);
        addresses.push_back(address_of(cluster, task));
      }
  const std::vector<PortAnswer> answers = say_hello(cluster, addresses);
  std::map<TaskId, PortAnswer> ports;
  for (std::size_t i = 0; i < tasks.size(); ++i) ports.emplace(tasks[i], answers[i]);
  return ports;
}

std::string names_of(const std::vector<TaskId>& tasks) {
  std::string names;
  for (const TaskId task : tasks) names += (names.empty() ? "" : ", ") + to_string(task);
  return names;
}

void check_nic(const Found& host, std::vector<Finding>& findings) {
  const std::vector<Interface> interfaces = find_interfaces();
  if (!host.cluster) {
    std::string last;
    for (const Interface& one : interfaces)
      if (!one.link.is_loopback && one.link.name != last)
        findings.push_back(judge(Link(one.link))), last = one.link.name;
    return;
  }
  bool has_own = false;
  bool has_others = false;
  for (const Host& one : host.hosts) (one.found.is_own ? has_own : has_others) = true;
  for (const Host& one : host.hosts) {
    if (!one.found.is_own) continue;
    OwnHost own{one.name, names_of(one.tasks), one.found.address, {}, has_others};
    for (const Interface& interface : interfaces) {
      // Every address of 127.0.0.0/8 belongs to the loopback interface.
      const bool is_loopback = interface.link.is_loopback && own.address.starts_with("127.");
      if (interface.address == own.address || is_loopback) own.link = interface.link;
    }
    findings.push_back(judge(own));
  }
  if (!has_own)
    findings.push_back(
        skipped("nic", "none of the cluster file's addresses belongs to this host (" + daemon::host_name() + ")"));
}

Rdma find_rdma(const Found& host) {
  Rdma rdma{find_rdma_devices(), may_use_rdma_cm()};
  if (!host.cluster) return rdma;
  const std::string& kind = host.cluster->transport.kind;
  bool has_others = false;
  for (const Host& one : host.hosts) has_others = has_others || !one.found.is_own;
  if (kind == "rdma") rdma.wish = RdmaWish::kRequired;
  if (kind == "auto" && has_others && !rdma.devices.empty()) rdma.wish = RdmaWish::kIfPossible;
  std::map<std::string, std::string> interfaces;  // by address
  for (const Interface& one : find_interfaces()) interfaces[one.address] = one.link.name;
  for (const Host& one : host.hosts) {
    const auto is_its = [&interfaces, &one](const RdmaDevice& device) {
      const auto found = interfaces.find(one.found.address);
      return device.is_active() && found != interfaces.end() && found->second == device.interface;
    };
    if (!one.found.is_own || std::ranges::any_of(rdma.devices, is_its)) continue;
    std::vector<TaskId> tasks = one.tasks;
    std::erase_if(tasks, [](TaskId task) { return task.role != Role::kPs && task.role != Role::kWorker; });
    if (!tasks.empty()) rdma.elsewhere += (rdma.elsewhere.empty() ? "" : ", ") + names_of(tasks);
  }
  return rdma;
}

// Compares this host's clock with the time that the chief's status reports.
void ask_time(const ClusterConfig& cluster, Clock& clock) {
  asio::io_context loop;
  ChiefClient client(loop, {});
  // The hash is 0, so the chief doesn't compare the hashes of the cluster files. judge(OwnPort) compares them.
  const ChiefTarget target{cluster.chief.address, cluster.name, 0};
  if (!client.connect(target, derive_timeouts(cluster.heartbeat.timeout).dial)) return;
  const std::int64_t asked = daemon::wall_nanoseconds();
  const auto status = ask_status(client, "", false, Duration::zero());
  const std::int64_t answered = daemon::wall_nanoseconds();
  if (!status || std::isnan(number_of(*status, "time"))) return;
  clock.round_trip_seconds = static_cast<double>(answered - asked) * 1e-9;
  clock.ahead_seconds = static_cast<double>(asked) * 1e-9 + clock.round_trip_seconds / 2 - number_of(*status, "time");
}

void check_clock(const Found& host, std::vector<Finding>& findings) {
  Clock clock;
  clock.is_synchronised = is_clock_synchronised();
  if (host.cluster) {
    clock.chief = host.cluster->chief.address;
    const auto chief = host.ports.find(TaskId{Role::kChief, 0});
    if (chief != host.ports.end() && chief->second.is_welcome) ask_time(*host.cluster, clock);
  }
  findings.push_back(judge(clock));
}

void check_ports(const Found& host, std::vector<Finding>& findings) {
  if (!host.cluster) return findings.push_back(skipped("port", "there is no cluster file that names ports"));
  for (const Host& one : host.hosts) {
    if (!one.found.is_own) continue;
    for (const TaskId task : one.tasks) {
      OwnPort own{task, address_of(*host.cluster, task), {}, ""};
      own.port = host.ports.at(task);
      look_behind(own.port, own.address);
      own.hash = metrics::hash_text(host.cluster->hash);
      own.metrics_address = metrics_address(*host.cluster, own.address);
      if (!own.metrics_address.empty()) {
        own.metrics = ask_for_metrics(own.metrics_address);
        look_behind(own.metrics, own.metrics_address);
      }
      findings.push_back(judge(own));
    }
  }
  for (const Host& one : host.hosts) {
    if (one.found.is_own) continue;
    OtherHost other{one.name, {}, one.found.problem};
    if (other.unresolved.empty())
      for (const TaskId task : one.tasks) other.tasks.push_back({task, host.ports.at(task)});
    findings.push_back(judge(other));
  }
}

void check_gpus(const Found& host, std::vector<Finding>& findings) {
  Gpus gpus = find_gpus();
  for (const Host& one : host.hosts)
    for (const TaskId task : one.tasks)
      if (one.found.is_own && (task.role == Role::kWorker || task.role == Role::kEvaluator) &&
          compute_config_of(*host.cluster, task).device.starts_with("cuda"))
        gpus.wanted.push_back({task, compute_config_of(*host.cluster, task).device});
  findings.push_back(judge(gpus));
}

// Returns the bytes of the parameters and the optimizer's slots. 0: the model isn't known.
std::uint64_t checkpoint_bytes(const JobConfig& job) {
  const auto model = model_of_job(job);
  if (!model.has_value() || !*model) return 0;
  return word_count(**model) * sizeof(float) * (1 + update::slots_of(job));
}

void check_disk(const Found& host, const std::optional<JobConfig>& job, std::vector<Finding>& findings) {
  if (host.has_own(Role::kChief))
    findings.push_back(judge(find_folder(FolderUse::kState, host.cluster->chief.state_directory, "chiefd")));
  else if (!job)
    findings.push_back(skipped("disk", host.cluster ? "the chief isn't on this host" : "there is no cluster file"));
  if (!job) return;
  const bool is_any = !host.cluster;
  const bool has_ps = host.has_own(Role::kPs);
  if (!job->checkpoint.directory.empty() && (is_any || has_ps || host.has_own(Role::kChief))) {
    Folder folder = find_folder(FolderUse::kCheckpoints, job->checkpoint.directory, has_ps ? "psd" : "chiefd");
    folder.checkpoint_bytes = checkpoint_bytes(*job);
    findings.push_back(judge(folder));
  }
  if (is_any || host.has_own(Role::kWorker) || host.has_own(Role::kEvaluator))
    findings.push_back(judge(find_folder(FolderUse::kData, job->data.path, "workerd")));
}

std::string name_of(const Finding& finding) {
  return finding.of.empty() ? finding.check : finding.check + " " + finding.of;
}

void print(const Found& host, const std::vector<Finding>& findings) {
  std::cout << "host " << daemon::host_name()
            << (host.cluster ? ", cluster " + host.cluster->name + " of " + host.file : ", no cluster file") << '\n';
  Table table({"CHECK", "STATE", "WHAT IT FOUND"}, Table::Align::kLeft);
  for (const Finding& finding : findings) {
    table.add({name_of(finding), to_string(finding.state), finding.found});
    if (!finding.advice.empty()) table.add({"", "", "what to do: " + finding.advice});
  }
  std::cout << table.text();
}

Json to_json(const Found& host, const std::vector<Finding>& findings) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json checks = Json::array();
  for (const Finding& finding : findings)
    checks.push_back({{"check", finding.check},
                      {"of", text_or_null(finding.of)},
                      {"state", to_string(finding.state)},
                      {"found", finding.found},
                      {"advice", text_or_null(finding.advice)}});
  return {{"well", !has_failed(findings)},
          {"host", daemon::host_name()},
          {"cluster_file", text_or_null(host.file)},
          {"checks", checks}};
}

Result<Found> find(const DoctorOptions& options) {
  Found host;
  auto file = find_cluster(options.cluster);
  if (!file && file.error().code == ErrorCode::kNoInput) return host;  // without a cluster file, checks only the host
  if (!file) return tl::unexpected<Error>(std::move(file.error()));
  auto cluster = config::read_cluster(*file);
  if (!cluster) return tl::unexpected<Error>(std::move(cluster.error()));
  host.file = std::move(*file);
  host.hosts = hosts_of(*cluster);
  host.ports = ask_ports(*cluster, host.hosts);
  host.cluster = std::move(*cluster);
  return host;
}

}  // namespace

int doctor(const DoctorOptions& options) {
  std::optional<JobConfig> job;
  if (!options.job.empty()) {
    auto file = config::read_job_file(options.job, {});
    if (!file) return daemon::report("disttrain doctor", file.error());
    job = std::move(file->config);
  }
  const auto host = find(options);
  if (!host) return daemon::report("disttrain doctor", host.error());
  const Rdma rdma = find_rdma(*host);

  std::vector<Finding> findings = {judge(find_memlock(rdma.wish))};
  check_nic(*host, findings);
  findings.push_back(judge(rdma));
  check_clock(*host, findings);
  check_ports(*host, findings);
  check_gpus(*host, findings);
  check_disk(*host, job, findings);

  if (options.json)
    std::cout << line_of(to_json(*host, findings)) << '\n';
  else
    print(*host, findings);
  return has_failed(findings) ? static_cast<int>(ErrorCode::kFailed) : 0;
}

}  // namespace disttrain::cli
