// The ps processes of `disttrain bench ps`. This class plays their chief: it gives them jobs without data, and no
// worker of a real job could join. Nothing that the processes write is kept.
#pragma once

#include <asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/messages/control.h"
#include "common/result.h"
#include "tools/disttrain/up/run_folder.h"
#include "tools/disttrain/up/supervisor.h"
#include "transport/connection.h"

namespace disttrain::cli {

// A job whose shards are ready for channels.
struct OpenShards {
  JobId job;
  Generation generation;
  std::uint64_t token = 0;
  Layout layout;
  std::vector<Owner> owners;  // by shard
  Roster roster;
};

class PsCluster {
 public:
  // Returns true when the user wants to end the verb.
  using IsInterrupted = std::function<bool()>;

  // Starts `ps` processes with one shard thread each, which listen at `address`, and waits until they have registered.
  // The shard thread of ps i stays on cores[i]; if `cores` is empty, the kernel chooses. Errors: a program is missing
  // or ended, the transport can't listen, or kTemporary after an interrupt. All references must outlive the cluster.
  // Call it on the main thread, which also runs `loop`.
  static Result<std::unique_ptr<PsCluster>> start(asio::io_context& loop, transport::Transport& transport,
                                                  const TransportConfig& config, const std::string& address,
                                                  std::uint32_t ps, const std::vector<std::uint32_t>& cores,
                                                  IsInterrupted is_interrupted);
  // Kills the processes and removes their files.
  ~PsCluster();
  PsCluster(const PsCluster&) = delete;

  // Replaces the job by another one, and waits until its shards are made. `model` must give each ps a shard. The
  // channels of the job before end.
  Result<OpenShards> open(const ModelSpec& model, const TrainSection& train, const Roster& roster);

  // Runs the loop until `is_done()` returns true. kUnavailable: a process has ended. kTemporary: an interrupt.
  Status run_until(const std::function<bool()>& is_done);

  const ClusterConfig& config() const { return config_; }
  std::vector<pid_t> pids() const;

 private:
  class Ps;

  PsCluster(asio::io_context& loop, transport::Transport& transport, RunFolder folder, std::string any_port,
            IsInterrupted is_interrupted);
  Status listen();
  Status spawn(const TransportConfig& transport, std::uint32_t ps, const std::vector<std::uint32_t>& cores);
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);

  // Constant.
  asio::io_context& loop_;
  transport::Transport& transport_;
  RunFolder run_folder_;
  const std::filesystem::path folder_;
  const std::string any_port_;
  const IsInterrupted is_interrupted_;
  ClusterConfig config_;

  // Owned by the loop.
  std::unique_ptr<transport::Listener> listener_;
  std::map<TaskId, std::unique_ptr<Ps>> ps_;
  JobId job_;
  std::optional<Error> failure_;  // of a ps
  Supervisor daemons_;
};

}  // namespace disttrain::cli
