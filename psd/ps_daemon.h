// The main thread of a ps. It keeps the connection to the chief, the listener and the job that is open. It passes
// hellos and the chief's orders on to the shard threads, and never waits for these threads.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/daemon/log/log.h"
#include "common/daemon/release_deadline.h"
#include "common/daemon/service.h"
#include "common/daemon/startup.h"
#include "common/metrics/page.h"
#include "psd/ps_metrics.h"
#include "shards/checkpoint_writer.h"
#include "shards/held_job.h"
#include "shards/shard_thread.h"
#include "task/membership.h"
#include "transport/connection.h"

namespace disttrain::psd {

class PsDaemon {
 public:
  // How the daemon ends if a thread hangs in a job that is over.
  struct Hung {
    // How long the threads may stand still. It is less than Timeouts::setup with the default heartbeat timeout, so that
    // the next job is made in time. Freeing 100 GB takes a few seconds.
    Duration patience = std::chrono::seconds(15);
    // Ends the process at once, without waiting for the threads (daemon::kHungCode). The log has been told why.
    std::function<void()> end;
  };
  // All references must outlive the daemon. `files`: the files of checkpoints.
  PsDaemon(asio::io_context& loop, transport::Transport& transport, checkpoint::Files& files, daemon::Startup startup,
           daemon::Log& log, Hung hung);
  ~PsDaemon();
  PsDaemon(const PsDaemon&) = delete;

  // Opens the listener and begins to dial the chief. kUnavailable: the port is in use.
  Status start();
  // Ends the loop. exit_code() then returns the exit code of the process.
  void stop() { loop_.stop(); }
  // Asks the chief for leave, and ends the daemon when the chief grants it. If the job takes checkpoints, the chief
  // orders one first. The daemon doesn't wait for the grant if no chief is connected, if nothing progresses for
  // Timeouts::leave_ps, or if leave() is called a second time.
  void leave();

  // For systemd.
  std::vector<daemon::WatchedLoop> loops();
  daemon::ServiceState state() const;
  // Takes over the settings that may change while the daemon runs.
  void change(const ClusterConfig& cluster);
  int exit_code() const { return exit_code_; }

  // While the daemon isn't ready, returns words for the chief that it waits for. Returns "" once the daemon is
  // registered with the chief.
  std::string waits_for() const { return membership_.waits_for(); }
  void collect(metrics::Page& page) const { metrics_.collect(page); }

  // The address on which the ps listens, with the real port number.
  const std::string& address() const { return startup_.address; }

 private:
  task::Handlers membership_handlers();
  TaskHello make_hello() const;
  Heartbeat make_heartbeat() const;
  void before_heartbeat();
  void on_refused(const Error& why);

  // Orders of the chief.
  void take(const CreateShards& order);
  void take(const SetRoster& order);
  void take(const FenceWorker& order);
  void take(const CloseJob& order);
  void take(const PrepareCheckpoint& order);
  void take(const AbandonCheckpoint& order);
  void take(const TakeCut& order);
  template <typename Other>
  void take(const Other&) {}  // other messages aren't for a ps
  void create(const CreateShards& order);
  bool is_newer(const CreateShards& order) const;
  // Ends the job's shards, also those that are still being made, and then calls after_drop(). If there is no job, calls
  // after_drop() at once.
  void drop_job();
  void after_drop();
  void start_thread(std::uint32_t index);
  void on_hung(const std::string& missed);
  void fail_job(JobId job, Generation generation, const Error& error);
  // The job that the ps holds, if the order is for it; null: for another job or generation, or it is being dropped.
  shards::HeldJob* open_job(JobId job, Generation generation);
  void on_news(const shards::ShardNews& news);

  // Answers to peers that say hello (ps_arrivals.cc).
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);
  void answer_hello(std::unique_ptr<transport::Arrival> arrival, const Hello& hello);
  void admit(std::unique_ptr<transport::Arrival> arrival, const ChannelHello& hello);
  void admit(std::unique_ptr<transport::Arrival> arrival, const ShardPeerHello& hello);
  void refuse(transport::Arrival& arrival, ErrorCode code, const std::string& reason);
  void compare_wires(const transport::Arrival& arrival);
  // Why the ps must refuse a hello for this shard now; none if it may accept the hello.
  std::optional<Refused> check(JobId job, Generation generation, ShardId shard, std::uint64_t token) const;

  // Runs `task` on the main loop, or drops `task` if the daemon has ended by then. Any thread may call this.
  template <typename Task>
  void post(Task task);

  // Constant.
  asio::io_context& loop_;
  transport::Transport& transport_;
  checkpoint::Files& files_;
  daemon::Log& log_;
  const Hung hung_;

  // False once the daemon has ended. Tasks that other threads post share it, because they may run after that.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  // Owned by the main loop.
  daemon::Startup startup_;
  int exit_code_ = 0;
  PsMetrics metrics_;
  metrics::RpcCode outcome_ = metrics::RpcCode::kOk;  // how the current hello is answered, for the metrics
  bool has_warned_of_wires_ = false;
  std::optional<CreateShards> next_;  // the newest order; carried out once the old job is dropped
  std::set<JobId> closing_;           // jobs that the chief ordered to close and that aren't dropped yet
  Duration interval_{};               // the heartbeat interval that the threads use
  task::Membership membership_;
  std::unique_ptr<transport::Listener> listener_;
  // Of jobs that have ended: a file system that hangs keeps the thread.
  std::list<std::unique_ptr<shards::CheckpointWriter>> retired_;
  shards::JobHost host_;
  std::unique_ptr<shards::HeldJob> job_;  // null: none
  bool is_releasing_ = false;             // job_ is over, and releases_ limit the time until the threads obey
  // The threads must end before the members that they use.
  std::vector<std::unique_ptr<shards::ShardThread>> threads_;
  std::vector<std::unique_ptr<daemon::ReleaseDeadline>> releases_;  // one for each of threads_; last: they use these
};

}  // namespace disttrain::psd
