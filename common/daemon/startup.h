// The start of every daemon: it reads the options and the cluster file and finds its task in the file.
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
  std::string address;            // the task's address in the cluster file, for other tasks
  std::string listen_address;     // address to listen on: the same, or an inherited socket ("fd:3")
  std::string metrics_address{};  // address of the daemon's metrics, for other hosts; "" = none; main sets it
  bool is_salvage = false;        // chief only: --salvage
  // Reads the cluster file again. Returns the same errors as --check.
  std::function<Result<ClusterConfig>()> read_file = {};
};

// Handles the options `--cluster FILE` (default: $DISTTRAIN_CLUSTER, else /etc/disttrain/cluster.toml), `--index N`
// (not for the chief), `--role evaluator` (workerd only: the task is then an evaluator), `--check`, `--version` and
// `--help`. Ignores SIGPIPE. If it returns none, all messages have been written, and the process should end with
// `exit_code`.
std::optional<Startup> start_daemon(Role role, int argc, char** argv, int& exit_code);

// Returns the first line of a daemon's log: its version, its task, the `address` at which it listens, and its settings.
// The line has the same hash of the configuration as the metric config_info. An empty `metrics_address` means that no
// metrics are served.
std::string banner(const ClusterConfig& cluster, TaskId task, const std::string& address, const std::string& transport,
                   const std::string& metrics_address);

// Writes "psd: message" to stderr, or an entry to systemd's journal if stderr goes there. `systemctl status` shows the
// message too. Returns the exit code for the error.
int report(const char* program, const Error& error);
// Does the same with a log: the message becomes the log's last line.
int report(Log& log, const Error& error);

}  // namespace disttrain::daemon
