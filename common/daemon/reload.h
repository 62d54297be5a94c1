// A cluster file that changed while the daemon runs: which changes apply at once, and which need a restart.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <functional>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/daemon/log/log.h"
#include "common/daemon/service.h"
#include "common/daemon/startup.h"

namespace disttrain::daemon {

struct Reload {
  ClusterConfig cluster;             // what applies from now on; has its own hash
  std::vector<std::string> taken;    // "log.level is \"debug\" now, was \"info\""
  std::vector<std::string> waiting;  // changes that need a restart, in the same form
};

// Takes log.level, log.rate and heartbeat.timeout (from which all other times are derived) from `file`, everything else
// from `running`.
Reload compare(const ClusterConfig& running, const ClusterConfig& file);

// On SIGHUP: reads the cluster file again, applies what may change, and logs what it applied and what needs a restart.
// A file that `--check` refuses changes nothing, and its problems are logged. Belongs to the loop; all references
// outlive it.
class ReloadSignal {
 public:
  // `take`: applies the daemon's own part (heartbeat timeout, hash); the log's part is applied here.
  ReloadSignal(asio::io_context& loop, const Startup& startup, Log& log, Service& service,
               std::function<void(const ClusterConfig&)> take);

 private:
  void wait();
  void reload();

  asio::signal_set signals_;
  const std::function<Result<ClusterConfig>()> read_file_;
  ClusterConfig running_;
  Log& log_;
  Service& service_;
  const std::function<void(const ClusterConfig&)> take_;
};

}  // namespace disttrain::daemon
