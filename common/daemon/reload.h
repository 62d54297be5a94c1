// A cluster file that was changed while the daemon runs: what of it holds at once, and what not before a restart.
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
  ClusterConfig cluster;             // what holds from now on; with a hash of its own
  std::vector<std::string> taken;    // "log.level is \"debug\" now, was \"info\""
  std::vector<std::string> waiting;  // that need a restart, the same way
};

// log.level, log.rate and heartbeat.timeout (of which all other times are derived) are taken from `file`, all else
// stays as it is in `running`.
Reload compare(const ClusterConfig& running, const ClusterConfig& file);

// SIGHUP: reads the cluster file anew, takes what may change, and says in the log what it took and what needs a
// restart. A file that `--check` would refuse changes nothing, and the log has the words of --check. Belongs to the
// loop; all references outlive it.
class ReloadSignal {
 public:
  // `take`: the daemon's own part (heartbeat timeout, hash); the log's is taken here.
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
