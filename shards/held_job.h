// The shards of one job on this process, as the main thread sees them. It has them made, passes the chief's orders and
// arrivals on to their threads, gathers their news, takes part in checkpoints, and ends them. It never waits for these
// threads.
//
// Belongs to the main loop. Its shards live on the threads of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/daemon/log/log.h"
#include "common/messages/control.h"
#include "common/messages/session.h"
#include "shards/checkpoint_writer.h"
#include "shards/shard_job.h"
#include "shards/shard_service.h"
#include "shards/shard_setup.h"
#include "shards/shard_thread.h"

namespace disttrain::shards {

// The parts of its process that a job uses. All references must outlive the job.
struct JobHost {
  std::vector<std::unique_ptr<ShardThread>>& threads;
  checkpoint::Files& files;  // of checkpoints
  daemon::Log& log;
  std::function<void(std::function<void()>)> post;         // runs a task on the main loop; any thread may call it
  std::function<void(wire::ControlMessage)> tell;          // sends a message to the chief
  std::function<void(TraceEvents)> tell_trace;             // sends a piece of a trace to the chief
  std::function<void()> beat_now;                          // sends a heartbeat at once
  std::function<void(ShardId, const ShardFigures&)> note;  // for the metrics
  // Takes over the closed writer of a job that ends, because its thread may still be at work.
  std::function<void(std::unique_ptr<CheckpointWriter>)> retire;
};

class HeldJob {
 public:
  // Begins to make the shards that `job` gives to job->self. When all are made, the chief hears ShardsCreated, or
  // TaskFailed if one can't be made. REQUIRES: the host has at least one thread.
  HeldJob(JobHost& host, ShardJobPtr job);
  ~HeldJob();
  HeldJob(const HeldJob&) = delete;

  const ShardJob& facts() const { return *job_; }
  std::vector<ShardId> shards() const;
  // True if this is the job's generation, and it isn't dropped.
  bool is_open(JobId job, Generation generation) const;
  bool is_dropping() const { return is_dropping_; }
  bool is_created() const { return is_created_; }
  bool is_writing() const { return writer_->is_busy(); }
  // How much work the threads of the shards and of the checkpoints have done. It only grows.
  std::uint64_t work() const { return setup_->pieces() + writer_->pieces(); }

  // Orders of the chief for this generation, and news of its shards. Ignored when the job is dropped, or if it has no
  // shard that they are for.
  void set_roster(const SetRoster& order);
  void fence(const Member& worker);
  void prepare(const PrepareCheckpoint& order);
  void abandon(const AbandonCheckpoint& order);
  void take_cut(const TakeCut& order);
  void hear(const ShardNews& news);
  // The chief may have missed what was reported before: reports the job's failure and its checkpoint again.
  void repeat_reports();
  // The chief has repeated its order to make the shards.
  void repeat_created();

  // Why a hello for this shard must be refused now; none if the shard may adopt the arrival.
  std::optional<Refused> check(JobId job, Generation generation, ShardId shard, std::uint64_t token) const;
  // Why a hello for a shard is refused that isn't here, or not yet.
  static std::string lacks(JobId job, ShardId shard);
  // REQUIRES of both: check() has returned none.
  void adopt_channel(std::unique_ptr<transport::Arrival> arrival, ShardId shard, const Member& worker);
  void adopt_peer(std::unique_ptr<transport::Arrival> arrival, ShardId from);

  // Ends the shards, also those that are still being made, and their work on files. Each sends its last report first.
  // Calls `done` then, on the main loop or at once; `done` may destroy the job. Another call does nothing.
  void drop(std::function<void()> done);

  // The shards report for the next heartbeat.
  void ask_for_reports();
  void add_to(Heartbeat& beat) const;
  Step newest_version() const;  // of the shards
  std::string text() const;     // for systemd, such as "job mnist, step 7"

 private:
  // The checkpoint attempt that the chief ordered last.
  struct Attempt {
    std::uint64_t number = 0;        // 0 = none yet
    bool is_over = false;            // abandoned
    std::set<ShardId> unprepared{};  // shards that haven't prepared yet
    // Reports to the chief; all of them are sent again whenever the holder registers.
    std::vector<wire::ControlMessage> said{};
  };

  void make_shards();
  void tell_created();
  // True if an arrival at the shard would be answered soon.
  bool answers(ShardId shard) const;
  void take(const ShardMade& made);
  void take(const ShardReady& ready);
  void take(const ShardSays& says);
  void take(const ShardTraced& traced);
  void take(const wire::ControlMessage& message);

  // held_job_checkpoints.cc
  void take(const ShardPrepared& prepared);
  void take(const ShardCopied& copied);
  bool is_at(JobId job, Generation generation, std::uint64_t attempt) const;
  void say(wire::ControlMessage report);
  void fail_checkpoint(std::uint64_t attempt, const Error& error);

  // Runs `task` on the shard's thread, or drops `task` if the shard has ended.
  template <typename Task>
  void on_shard(ShardId shard, Task task) {
    host_.threads[threads_.at(shard)]->run([shard, work = std::move(task)](ShardThread& on) mutable {
      const auto service = on.services().find(shard);
      if (service != on.services().end()) work(*service->second);
    });
  }

  JobHost& host_;
  const ShardJobPtr job_;
  const std::shared_ptr<ShardSetup> setup_ = std::make_shared<ShardSetup>();
  std::unique_ptr<CheckpointWriter> writer_;
  const Instant ordered_;                   // when the chief's order came
  std::map<ShardId, std::size_t> threads_;  // for each shard on this process, the index of its thread
  std::set<ShardId> made_;
  std::set<ShardId> ready_;
  std::map<ShardId, Step> versions_;
  std::map<ShardId, ShardLoad> loads_;
  std::shared_ptr<const PacerReport> pacer_;  // the pacer's last report, if the pacer is on this process
  bool is_created_ = false;                   // true: ShardsCreated was sent to the chief
  bool is_dropping_ = false;
  Attempt attempt_;
  TraceTake trace_;                   // the events of the shards that have told theirs
  std::size_t traced_ = 0;            // the number of these shards
  std::optional<TaskFailed> failed_;  // the failure of the job; it is reported again whenever the holder registers
  // False once the job has ended. Callbacks of the writer share it, because they may run after that.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace disttrain::shards
