// The daemons that `up` starts on this host: their run folder, their cluster file, their sockets.
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
#include "tools/disttrain/up/runtime_folder.h"
#include "tools/disttrain/up/supervisor.h"

namespace disttrain::cli {

struct LocalClusterOptions {
  std::string cluster_file;  // "": a file is made, with `ps` and `workers` tasks on free ports
  std::uint32_t ps = 1;
  std::uint32_t workers = 2;
  std::vector<std::string> sets;                // keys of cluster.toml; only without a file
  std::string name;                             // of the run: the job's name
  bool restarts = true;                         // daemons that end unexpectedly are started again
  std::function<void(const std::string&)> say;  // see Supervisor
};

class LocalCluster {
 public:
  // Binds every socket first, so that a port in use is reported before any daemon has started. Then starts the chief,
  // if it belongs on this host. On an error, whatever was started is stopped and the run folder removed.
  static Result<std::unique_ptr<LocalCluster>> start(asio::io_context& loop, const LocalClusterOptions& options);
  // Starts the ps and workers. Call it once the chief has taken the job: else another job in its journal might begin to
  // train, only to be torn down when ours is refused.
  Status start_tasks();
  // Stops, as stop(). Removes the run folder unless keep_folder() was called.
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const ClusterConfig& config() const { return config_; }
  std::uint32_t own_workers() const;  // started on this host
  const std::filesystem::path& folder() const { return folder_; }
  const std::string& cluster_file() const { return cluster_file_; }
  void keep_folder() { is_folder_kept_ = true; }

  const Supervisor& daemons() const { return supervisor_; }
  // Supervisor::end_silent() for the chief.
  bool end_silent_chief(Duration silence) { return supervisor_.end_silent(TaskId{Role::kChief, 0}, silence); }
  // As Supervisor::stop().
  void stop(Duration deadline) { supervisor_.stop(deadline); }

 private:
  LocalCluster(asio::io_context& loop, std::filesystem::path folder, const LocalClusterOptions& options);
  Status make_config(const LocalClusterOptions& options);
  Status bind_all();
  Status spawn(std::size_t i);

  const std::filesystem::path folder_;
  std::string cluster_file_;
  ClusterConfig config_;
  std::vector<TaskId> own_tasks_;
  std::vector<ListeningSocket> listeners_;  // in the order of own_tasks_; each is closed once its task has started
  Supervisor supervisor_;
  std::optional<Registration> registration_;
  bool is_folder_kept_ = false;
};

}  // namespace disttrain::cli
