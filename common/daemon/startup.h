// The start of every daemon: options, the cluster file, the task's place in it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/config/cluster_config.h"
#include "common/daemon/log/log.h"
#include "common/ids.h"
#include "common/result.h"

namespace disttrain::daemon {

inline constexpr char kVersion[] = "0.1.0";
inline constexpr char kDefaultClusterFile[] = "/etc/disttrain/cluster.toml";

struct Startup {
  ClusterConfig cluster;
  TaskId task;
  Incarnation incarnation;
  std::string address;            // its address for others, as in the cluster file
  std::string listen_address;     // the address to listen on: the same, or an inherited socket ("fd:3")
  std::string metrics_address{};  // where it serves its metrics, for others; "" = not served; main fills it in
  bool is_salvage = false;        // chief only: --salvage
  // Reads the cluster file as it is now, or returns what --check says of it.
  std::function<Result<ClusterConfig>()> read_file = {};
};

// `--cluster FILE` (else $DISTTRAIN_CLUSTER, else /etc/disttrain/cluster.toml), `--index N` (not for the chief),
// `--check`, `--version`, `--help`. Ignores SIGPIPE. None: end the process with `exit_code`; all messages have been
// written.
std::optional<Startup> start_daemon(Role role, int argc, char** argv, int& exit_code);

// A daemon's first log line, once it listens at `address`: its version, task, address and settings. The hash of the
// configuration is that of its metric config_info. `metrics_address`: "" = not served.
std::string banner(const ClusterConfig& cluster, TaskId task, const std::string& address, const std::string& transport,
                   const std::string& metrics_address);

// Writes "psd: message" to stderr (or an entry, if stderr is the journal) and to systemd as the status. Returns the
// exit code for the error.
int report(const char* program, const Error& error);
// The same once there is a log, as its last line.
int report(Log& log, const Error& error);

}  // namespace disttrain::daemon
