// Handles a change of the cluster file while the daemon runs. Some changes apply at once, and others need a restart.
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
  ClusterConfig cluster;             // the settings that apply from now on; `hash` is the hash of these
  std::vector<std::string> taken;    // the applied changes, such as "log.level is \"debug\" now, was \"info\""
  std::vector<std::string> waiting;  // the changes that need a restart, in the same form
};

// Takes log.level, log.rate and heartbeat.timeout from `file`, and everything else from `running`. All other time
// limits derive from heartbeat.timeout.
Reload compare(const ClusterConfig& running, const ClusterConfig& file);

// On SIGHUP, reads the cluster file again, applies the changes that may apply at once, and logs all changes. If the
// file has errors, nothing changes, and the errors are logged. This object belongs to the loop. All references must
// outlive it.
class ReloadSignal {
 public:
  // This class changes the log's settings itself. `take` must apply the others (heartbeat timeout and hash).
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
