// The main thread of a ps. It keeps the connection to the chief, the listener and the job that is open. It passes
// hellos and the chief's orders on to the shard threads, and never waits for these threads.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/daemon/log/log.h"
#include "common/daemon/service.h"
#include "common/daemon/startup.h"
#include "common/metrics/page.h"
#include "psd/checkpoint_writer.h"
#include "psd/ps_metrics.h"
#include "psd/shard_job.h"
#include "psd/shard_thread.h"
#include "task/membership.h"
#include "transport/connection.h"

namespace disttrain::psd {

class PsDaemon {
 public:
  // All references must outlive the daemon. `files`: the files of checkpoints.
  PsDaemon(asio::io_context& loop, transport::Transport& transport, checkpoint::Files& files, daemon::Startup startup,
           daemon::Log& log);
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
  // The checkpoint attempt that the chief ordered last.
  struct Attempt {
    std::uint64_t number = 0;        // 0 = none yet
    bool is_over = false;            // abandoned
    std::set<ShardId> unprepared{};  // shards that haven't prepared yet
    // Reports to the chief; the ps sends all of them again whenever it registers.
    std::vector<wire::ControlMessage> said{};
  };
  // The job whose shards are on this ps.
  struct OpenJob {
    ShardJobPtr facts;
    std::shared_ptr<ShardSetup> setup;
    std::map<ShardId, std::size_t> threads;  // for each shard on this ps, the index of its thread
    std::set<ShardId> made;
    std::set<ShardId> ready;
    std::map<ShardId, Step> versions;
    std::map<ShardId, ShardLoad> loads;
    std::shared_ptr<const PacerReport> pacer;  // the pacer's last report, if the pacer is on this ps
    Instant ordered{};                         // when the chief's order came
    bool created = false;                      // true: ShardsCreated was sent to the chief
    Attempt attempt;
    TraceTake trace;                   // the events of the shards that have told theirs
    std::size_t traced = 0;            // the number of these shards
    std::optional<TaskFailed> failed;  // the failure of the job; the ps reports it again whenever it registers
  };

  task::Handlers membership_handlers();
  TaskHello make_hello() const;
  Heartbeat make_heartbeat() const;
  void before_heartbeat();
  Step newest_version() const;   // of the job's shards
  std::string job_text() const;  // for systemd; "": no job
  void on_refused(const Error& why);

  // Orders of the chief.
  void take(const CreateShards& order);
  void take(const SetRoster& order);
  void take(const FenceWorker& order);
  void take(const CloseJob& order);
  template <typename Other>
  void take(const Other&) {}  // other messages aren't for a ps
  void create(const CreateShards& order);
  bool is_newer(const CreateShards& order) const;
  // Ends the job's shards, also those that are still being made, and then calls after_drop(). If there is no job, calls
  // after_drop() at once.
  void drop_job();
  void after_drop();
  bool is_open(JobId job, Generation generation) const;
  void fail_job(JobId job, Generation generation, const Error& error);

  // Functions that handle news from the shards. They run on the main loop.
  void on_news(const ShardNews& news);
  void hear(const ShardMade& made);
  void hear(const ShardReady& ready);
  void hear(const ShardSays& says);
  void hear(const ShardTraced& traced);
  void hear(const wire::ControlMessage& message);

  // Checkpoints: the chief's orders and the shards' answers (ps_checkpoints.cc).
  void take(const PrepareCheckpoint& order);
  void take(const AbandonCheckpoint& order);
  void take(const TakeCut& order);
  void hear(const ShardPrepared& prepared);
  void hear(const ShardCopied& copied);
  bool is_at(JobId job, Generation generation, std::uint64_t attempt) const;
  void say(wire::ControlMessage report);
  void fail_checkpoint(std::uint64_t attempt, const Error& error);

  // Answers to peers that say hello (ps_arrivals.cc).
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);
  void answer_hello(std::unique_ptr<transport::Arrival> arrival, const Hello& hello);
  void admit(std::unique_ptr<transport::Arrival> arrival, const ChannelHello& hello);
  void admit(std::unique_ptr<transport::Arrival> arrival, const ShardPeerHello& hello);
  void refuse(transport::Arrival& arrival, ErrorCode code, const std::string& reason);
  void compare_wires(const transport::Arrival& arrival);
  // True if an arrival at the shard would be answered soon.
  bool answers(ShardId shard) const;
  // Why the ps must refuse a hello for this shard now; none if it may accept the hello.
  std::optional<Refused> check(JobId job, Generation generation, ShardId shard, std::uint64_t token) const;

  // Runs `task` on the shard's thread, or drops `task` if the shard has ended.
  template <typename Task>
  void on_shard(ShardId shard, Task task) {
    threads_[job_->threads.at(shard)]->run([shard, work = std::move(task)](ShardThread& on) mutable {
      const auto service = on.services().find(shard);
      if (service != on.services().end()) work(*service->second);
    });
  }
  // Runs `task` on the main loop, or drops `task` if the daemon has ended by then. Any thread may call this.
  template <typename Task>
  void post(Task task);

  // Constant.
  asio::io_context& loop_;
  transport::Transport& transport_;
  checkpoint::Files& files_;
  daemon::Log& log_;

  // False once the daemon has ended. Tasks that other threads post share it, because they may run after that.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  // Owned by the main loop.
  daemon::Startup startup_;
  int exit_code_ = 0;
  PsMetrics metrics_;
  metrics::RpcCode outcome_ = metrics::RpcCode::kOk;  // how the current hello is answered, for the metrics
  std::optional<OpenJob> job_;
  bool has_warned_of_wires_ = false;
  bool dropping_ = false;
  std::optional<CreateShards> next_;  // the newest order; carried out once the old job is dropped
  std::set<JobId> closing_;           // jobs that the chief ordered to close and that aren't dropped yet
  Duration interval_{};               // the heartbeat interval that the threads use
  task::Membership membership_;
  std::unique_ptr<transport::Listener> listener_;
  CheckpointWriter writer_;
  // The last member: the threads must end before the members that they use.
  std::vector<std::unique_ptr<ShardThread>> threads_;
};

}  // namespace disttrain::psd
