// What every daemon does first: options, the cluster file, its place in it.
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
  std::string address;            // where others reach it, as in the cluster file
  std::string listen_address;     // what to listen on: the same, or a socket that was passed ("fd:3")
  std::string metrics_address{};  // where it serves its metrics, as others reach it; "" = nowhere; main fills it in
  bool is_salvage = false;        // the chief's --salvage
  // The cluster file as it is now, or what --check says of it.
  std::function<Result<ClusterConfig>()> read_file = {};
};

// `--cluster FILE` (else $DISTTRAIN_CLUSTER, else /etc/disttrain/cluster.toml), `--index N` (not for the chief),
// `--check`, `--version`, `--help`. Ignores SIGPIPE. None: the process is to end with `exit_code`, everything has been
// said.
std::optional<Startup> start_daemon(Role role, int argc, char** argv, int& exit_code);

// How a daemon begins to speak, once it listens at `address`: its version, who and where it is, what it runs with. The
// configuration's hash is that of its metric config_info. `metrics_address`: "" = nowhere.
std::string banner(const ClusterConfig& cluster, TaskId task, const std::string& address, const std::string& transport,
                   const std::string& metrics_address);

// "psd: message" to stderr (where that is the journal, an entry of it), and to systemd as the status; the exit code
// that goes with it.
int report(const char* program, const Error& error);
// The same once there is a log: its last line.
int report(Log& log, const Error& error);

}  // namespace disttrain::daemon
