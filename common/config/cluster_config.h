// cluster.toml as plain values with their defaults. common/config/reader/reader.h fills it and reports every problem.
// etc/cluster.toml shows each key; a test keeps the two equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain {

// The most members of a roster on the wire (transport/wire/codec.h: kMaxMembers).
inline constexpr std::size_t kMaxWorkers = 1024;

// A task's metrics port minus its own port.
inline constexpr std::uint16_t kMetricsPortDistance = 1000;

struct ChiefConfig {
  std::string address = "127.0.0.1:7100";  // host:port
  std::string state_directory = "/var/lib/disttrain/chief";
  std::uint32_t max_queued_jobs = 100;
};

struct PsConfig {
  std::string address;             // host:port; required: the defaults 127.0.0.1:7110+i are only in examples
  std::uint32_t shards = 0;        // threads it offers; 0 = one per core given
  std::uint64_t memory_bytes = 0;  // memory that it may use; 0 = "auto"
  std::vector<std::uint32_t> cores;
};

struct WorkerConfig {
  std::string address;  // host:port
  std::uint32_t threads = 1;
  std::vector<std::uint32_t> cores;
  std::string device = "cpu";
};

struct TransportConfig {
  std::string kind = "auto";  // auto | tcp
  std::uint32_t credits = 4;  // 1..64 frames outstanding per channel
  std::uint32_t max_connections = 1024;
  Duration hello_timeout = std::chrono::seconds(2);
  std::string congestion_control;  // "" = the system's choice; between tasks of one host cubic, if allowed
};

struct HeartbeatConfig {
  Duration timeout = std::chrono::seconds(1);  // 100 ms .. 1 h; everything else is derived, see common/timeouts.h
};

struct MetricsConfig {
  // Where a daemon serves its metrics, at the port kMetricsPortDistance above its own; "host:0": any free port; "": not
  // served.
  std::string listen = "127.0.0.1";
};

struct LogConfig {
  std::string level = "info";   // debug | info | warn | error
  std::string format = "auto";  // auto | text | json | journal
  std::uint32_t rate = 100;     // lines per second and place
};

struct ClusterConfig {
  std::string name = "disttrain";
  bool allow_unlisted_workers = false;  // elastic: workers that the file doesn't name may join
  ChiefConfig chief;
  std::vector<PsConfig> ps;
  std::vector<WorkerConfig> workers;
  TransportConfig transport;
  HeartbeatConfig heartbeat;
  MetricsConfig metrics;
  LogConfig log;
  std::size_t unlisted = 0;  // workers at the end that the file doesn't name; known to this process only, not hashed
  // FNV-1a of the file's meaning (not of its comments or order of keys). Tasks of one cluster with different hashes get
  // a warning.
  std::uint64_t hash = 0;
};

// The address of a task; the task must be in the file.
const std::string& address_of(const ClusterConfig& cluster, TaskId task);

}  // namespace disttrain
