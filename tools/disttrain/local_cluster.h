// The daemons that `up` starts on this host: their run folder, their sockets, their lives.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/result.h"
#include "tools/disttrain/child.h"
#include "tools/disttrain/runtime_folder.h"

namespace disttrain::cli {

struct LocalClusterOptions {
  std::string cluster_file;  // "": one is made, with `ps` and `workers` tasks on free ports
  std::uint32_t ps = 1;
  std::uint32_t workers = 2;
  std::vector<std::string> sets;  // of cluster.toml; only without a file
  std::string name;               // of the run: the job's name
};

class LocalCluster {
 public:
  // Binds every socket before any daemon starts, so that a port in use is told with nothing half-started. On an error
  // all that was started is stopped again and the run folder is gone.
  static Result<std::unique_ptr<LocalCluster>> start(asio::io_context& loop, const LocalClusterOptions& options);
  // Stops, as stop(). Removes the run folder unless keep_folder() was called.
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const ClusterConfig& config() const { return config_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::string& cluster_file() const { return cluster_file_; }
  void keep_folder() { is_folder_kept_ = true; }

  // Children that have ended before stop(), the first to end first.
  const std::vector<const Child*>& ended() const { return ended_; }
  const Child* ended_child(TaskId task) const;
  const Child* find(TaskId task) const;

  // TERM to all, and after `deadline` KILL to those that remain. Returns when none is left.
  void stop(Duration deadline);

 private:
  LocalCluster(asio::io_context& loop, std::filesystem::path folder);
  Status make_config(const LocalClusterOptions& options);
  Status bind_all();
  Status spawn_all();
  void watch_children();
  void reap_all();
  std::size_t running() const;

  asio::io_context& loop_;
  const std::filesystem::path folder_;
  asio::signal_set child_signals_;
  std::string cluster_file_;
  ClusterConfig config_;
  std::vector<TaskId> own_tasks_;
  std::vector<ListeningSocket> listeners_;  // as own_tasks_; closed here once the children have them
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<const Child*> ended_;
  std::optional<Registration> registration_;
  bool is_stopping_ = false;
  bool is_folder_kept_ = false;
};

}  // namespace disttrain::cli
