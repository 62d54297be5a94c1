// The daemons that `up` starts on this host, with their run folder, cluster file and sockets.
#pragma once

#include <asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/result.h"
#include "tools/disttrain/up/run_folder.h"
#include "tools/disttrain/up/runtime_folder.h"
#include "tools/disttrain/up/supervisor.h"

namespace disttrain::cli {

struct LocalClusterOptions {
  std::string cluster_file;  // "" = make one from the numbers below, with free ports
  std::uint32_t ps = 1;
  std::uint32_t workers = 2;
  std::uint32_t evaluators = 0;
  std::vector<std::string> sets;                // SECTION.KEY=VALUE for cluster.toml; only if `cluster_file` is ""
  std::string name;                             // the job's name, which becomes the cluster's name
  bool restarts = true;                         // restart daemons that end unexpectedly
  std::function<void(const std::string&)> say;  // see Supervisor
};

class LocalCluster {
 public:
  // First binds the sockets of all daemons, and looks for the devices that the transport needs. So it can report a port
  // in use or a missing device before any daemon has started. Then starts the chief, if the chief's address is on this
  // host. On an error, stops what it has started and removes the run folder.
  static Result<std::unique_ptr<LocalCluster>> start(asio::io_context& loop, const LocalClusterOptions& options);
  // Starts the ps, workers and evaluators. Call it after the chief has accepted the user's job. Otherwise the tasks
  // might begin to train another job, which is in the chief's journal. If the chief then refused the user's job, `up`
  // would stop the tasks again.
  Status start_tasks();
  // Stops all daemons. Removes the run folder, unless keep_folder() was called.
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const ClusterConfig& config() const { return config_; }
  std::uint32_t own_workers() const;  // the number of workers on this host
  const std::filesystem::path& folder() const { return folder_; }
  const std::string& cluster_file() const { return cluster_file_; }
  void keep_folder() { run_folder_.keep(); }

  const Supervisor& daemons() const { return supervisor_; }
  // Calls Supervisor::end_silent() for the chief.
  bool end_silent_chief(Duration silence) { return supervisor_.end_silent(TaskId{Role::kChief, 0}, silence); }
  // Calls Supervisor::stop().
  void stop(Duration deadline) { supervisor_.stop(deadline); }

 private:
  LocalCluster(asio::io_context& loop, RunFolder folder, const LocalClusterOptions& options);
  Status make_config(const LocalClusterOptions& options);
  Status bind_all();
  Status spawn(std::size_t i);

  RunFolder run_folder_;  // the first member, because the others use its files
  const std::filesystem::path folder_;
  std::string cluster_file_;
  ClusterConfig config_;
  std::vector<TaskId> own_tasks_;
  std::vector<ListeningSocket> listeners_;  // one for each of own_tasks_; closed when that task has started
  Supervisor supervisor_;
  std::optional<Registration> registration_;
};

}  // namespace disttrain::cli
