// The main thread of a ps: its membership, the listener, and which job is open. It hands hellos and the chief's orders
// to the threads of the shards, and never waits for them.
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
  // All references outlive it. `files`: where checkpoints are.
  PsDaemon(asio::io_context& loop, transport::Transport& transport, checkpoint::Files& files, daemon::Startup startup,
           daemon::Log& log);
  ~PsDaemon();
  PsDaemon(const PsDaemon&) = delete;

  // Listens and begins to dial the chief. kUnavailable: the port is in use.
  Status start();
  // Ends the loop; exit_code() says how.
  void stop() { loop_.stop(); }
  // Ends it in good order: when the chief lets it go, which takes a checkpoint first where the job takes any. Ends it
  // when nothing has got on for Timeouts::leave_ps, and at once where no chief is there, or when it is called again.
  void leave();

  // For systemd.
  std::vector<daemon::WatchedLoop> loops();
  daemon::ServiceState state() const;
  // What may change while it runs.
  void change(const ClusterConfig& cluster);
  int exit_code() const { return exit_code_; }

  // What it isn't ready for want of; "": it is registered with the chief.
  std::string waits_for() const { return membership_.waits_for(); }
  void collect(metrics::Page& page) const { metrics_.collect(page); }

  // Where it really listens.
  const std::string& address() const { return startup_.address; }

 private:
  // The checkpoint that the chief has ordered last.
  struct Attempt {
    std::uint64_t number = 0;                  // 0 = none yet
    bool is_over = false;                      // given up
    std::set<ShardId> unprepared{};            // that haven't heard of it yet
    std::vector<wire::ControlMessage> said{};  // of it; the chief that hears us again may have missed it
  };
  // A job whose shards are here.
  struct OpenJob {
    ShardJobPtr facts;
    std::shared_ptr<ShardSetup> setup;
    std::map<ShardId, std::size_t> threads;  // of the shards that live here
    std::set<ShardId> ready;
    std::map<ShardId, Step> versions;
    std::map<ShardId, ShardLoad> loads;
    std::shared_ptr<const PacerReport> pacer;  // the last one, where the pacer is here
    Instant ordered{};                         // when the chief's order came
    bool created = false;                      // the chief was told
    Attempt attempt;
    std::optional<TaskFailed> failed;  // said again to each chief: the one that heard it may be gone
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
  void take(const Other&) {}  // not for a ps
  void create(const CreateShards& order);
  bool is_newer(const CreateShards& order) const;
  // Ends the job's shards, then goes on with after_drop(); at once where there is no job. What they are being made from
  // is left.
  void drop_job();
  void after_drop();
  bool is_open(JobId job, Generation generation) const;
  void fail_job(JobId job, Generation generation, const Error& error);

  // What shards say; on the main loop.
  void on_news(const ShardNews& news);
  void hear(const ShardReady& ready);
  void hear(const ShardSays& says);
  void hear(const wire::ControlMessage& message);

  // Checkpoints, orders and what shards say (ps_checkpoints.cc).
  void take(const PrepareCheckpoint& order);
  void take(const AbandonCheckpoint& order);
  void take(const TakeCut& order);
  void hear(const ShardPrepared& prepared);
  void hear(const ShardCopied& copied);
  bool is_at(JobId job, Generation generation, std::uint64_t attempt) const;
  void say(wire::ControlMessage report);
  void fail_checkpoint(std::uint64_t attempt, const Error& error);

  // Peers that say hello (ps_arrivals.cc).
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);
  void answer_hello(std::unique_ptr<transport::Arrival> arrival, const Hello& hello);
  void admit(std::unique_ptr<transport::Arrival> arrival, const ChannelHello& hello);
  void admit(std::unique_ptr<transport::Arrival> arrival, const ShardPeerHello& hello);
  void refuse(transport::Arrival& arrival, ErrorCode code, const std::string& reason);
  // Why a hello for a job's shard can't be granted now, if it can't.
  std::optional<Refused> check(JobId job, Generation generation, ShardId shard, std::uint64_t token) const;

  // On the shard's thread; dropped where the shard isn't there any more.
  template <typename Task>
  void on_shard(ShardId shard, Task task) {
    threads_[job_->threads.at(shard)]->run([shard, work = std::move(task)](ShardThread& on) mutable {
      const auto service = on.services().find(shard);
      if (service != on.services().end()) work(*service->second);
    });
  }
  // Runs on the main loop, unless the daemon has ended by then. Any thread.
  template <typename Task>
  void post(Task task);

  // Constant.
  asio::io_context& loop_;
  transport::Transport& transport_;
  checkpoint::Files& files_;
  daemon::Log& log_;

  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with what other threads post

  // Owned by the main loop.
  daemon::Startup startup_;
  int exit_code_ = 0;
  PsMetrics metrics_;
  metrics::RpcCode outcome_ = metrics::RpcCode::kOk;  // of the hello that is being taken
  std::optional<OpenJob> job_;
  bool dropping_ = false;
  std::optional<CreateShards> next_;  // to be carried out once the job is dropped: the newest order
  std::set<JobId> closing_;           // told to be closed, and still being dropped
  Duration interval_{};               // that the threads go by
  task::Membership membership_;
  std::unique_ptr<transport::Listener> listener_;
  CheckpointWriter writer_;
  std::vector<std::unique_ptr<ShardThread>> threads_;  // end before all that they use
};

}  // namespace disttrain::psd
