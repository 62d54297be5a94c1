// The settings of cluster.toml with their defaults. The reader (common/config/reader/reader.h) fills them from the
// file. etc/cluster.toml shows each key, and a test checks that its values equal the defaults here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain {

// The most members that a roster can have. The wire format has the same limit (kMaxMembers in common/bounds.h).
inline constexpr std::size_t kMaxWorkers = 1024;
inline constexpr std::size_t kMaxEvaluators = 64;

// A task's metrics port is its own port plus this number.
inline constexpr std::uint16_t kMetricsPortDistance = 1000;

struct ChiefConfig {
  std::string address = "127.0.0.1:7100";  // host:port
  std::string state_directory = "/var/lib/disttrain/chief";
  std::uint32_t max_queued_jobs = 100;
};

struct PsConfig {
  std::string address;             // host:port; required in the file
  std::uint32_t shards = 0;        // number of shard threads; 0 = one per core that the ps may use
  std::uint64_t memory_bytes = 0;  // the most memory that the ps may use; 0 = "auto"
  std::vector<std::uint32_t> cores;
};

// Of a worker or an evaluator.
struct WorkerConfig {
  std::string address;  // host:port
  std::uint32_t threads = 1;
  std::vector<std::uint32_t> cores;
  std::string device = "cpu";  // or "pjrt:" and the absolute path of a PJRT plugin
};

struct TransportConfig {
  std::string kind = "auto";          // auto | tcp | shm | rdma
  std::uint32_t credits = 4;          // 1..64 frames outstanding per channel
  std::uint32_t max_connections = 0;  // the most accepted connections of a task; 0: see max_connections_of()
  Duration hello_timeout = std::chrono::seconds(2);
  // TCP congestion control; "" = the system's choice, but cubic between tasks of one host if the kernel allows it
  std::string congestion_control;
};

struct HeartbeatConfig {
  Duration timeout = std::chrono::seconds(1);  // 100 ms to 1 h; common/timeouts.h derives all other time limits
};

struct MetricsConfig {
  // The address where a daemon serves its metrics. "HOST": that host, at the daemon's own port plus
  // kMetricsPortDistance. "HOST:0": any free port. "": the daemon serves no metrics.
  std::string listen = "127.0.0.1";
};

struct LogConfig {
  std::string level = "info";   // debug | info | warn | error
  std::string format = "auto";  // auto | text | json | journal
  std::uint32_t rate = 100;     // the most log lines per second from one place in the code
};

struct ClusterConfig {
  std::string name = "disttrain";
  bool allow_unlisted_workers = false;  // true: workers that the file doesn't name may join
  ChiefConfig chief;
  std::vector<PsConfig> ps;
  std::vector<WorkerConfig> workers;
  std::vector<WorkerConfig> evaluators;
  TransportConfig transport;
  HeartbeatConfig heartbeat;
  MetricsConfig metrics;
  LogConfig log;
  // number of workers at the end of `workers` that aren't in the file; only this process knows them, and `hash` ignores
  // them
  std::size_t unlisted = 0;
  // FNV-1a hash of the settings; comments and the order of keys don't count. The chief warns if a task's hash differs.
  std::uint64_t hash = 0;
};

// The most accepted connections that a task may have open at once (transport::ListenerLimits). If
// transport.max_connections is 0, it is twice the number of connections that the cluster needs, because a peer that
// connects again may be faster than the end of its old connection, and 1024 more. At the chief each task has a
// connection. A ps has one of each worker for each of its `threads` shards, and one of each other shard. `threads`: a
// ps's number of shard threads; else 0.
std::uint32_t max_connections_of(const ClusterConfig& cluster, std::uint32_t threads);

// The address of a task. The task must be in the file.
const std::string& address_of(const ClusterConfig& cluster, TaskId task);
// The settings of a worker or an evaluator. The defaults if the file doesn't name the task.
const WorkerConfig& compute_config_of(const ClusterConfig& cluster, TaskId task);

}  // namespace disttrain
