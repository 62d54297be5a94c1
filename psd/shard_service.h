// One shard of one job on its thread: its connections, and between them its rules and bytes (Shard). Make all calls on
// the thread's loop; only `upward` goes to the main thread, by itself.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/daemon/clock.h"
#include "common/daemon/log/log.h"
#include "psd/peer_link.h"
#include "psd/shard_figures.h"
#include "psd/shard_job.h"
#include "psd/shard_setup.h"
#include "psd/store/shard.h"
#include "psd/visited_log.h"
#include "psd/worker_channel.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::psd {

// What a shard tells the main thread.
struct ShardReady {
  ShardId shard;
};
struct ShardSays {
  ShardId shard;
  Step version;
  std::shared_ptr<const PacerReport> pacer;  // the pacer's report, else null; shared, because its ledger may be long
  bool at_once = false;                      // forward to the chief now
  ShardFigures figures{};
};
// The shard knows of a checkpoint attempt: marks and cuts of it may come.
struct ShardPrepared {
  std::uint64_t attempt = 0;
  ShardId shard;
};
// A checkpoint's copy is taken; null if the last copy is still being written.
struct ShardCopied {
  std::uint64_t attempt = 0;
  ShardId shard;
  ShardEntry entry;
  std::optional<PacerReport> pacer;
  std::shared_ptr<const ShardCopy> copy;
  Duration cut{};     // longest time that the copy blocked the loop
  Duration parked{};  // since the first mark
};
// Carries the job and generation of its shard: news of a dropped shard may still arrive.
struct ShardNews {
  JobId job;
  Generation generation;
  std::variant<ShardReady, ShardSays, ShardPrepared, ShardCopied, wire::ControlMessage> what;
};

// What a shard uses of its thread and process.
struct ShardPlace {
  asio::io_context& loop;
  transport::Transport& transport;
  checkpoint::Files& files;
  daemon::Log& log;
  std::atomic<std::uint64_t>& turns;             // incremented as long as the shard makes progress
  std::function<void(const ShardNews&)> upward;  // any thread; posts
};

class ShardService final : private ChannelOwner, private PeerOwner, private Outside {
 public:
  // Makes the shard with its memory and its first values, which takes time. Throws std::bad_alloc. ShardReady follows
  // when the shard is linked to its pacer. Errors are those of ShardOrigin and VisitedLog; kTemporary: `setup` was
  // abandoned.
  static Result<std::unique_ptr<ShardService>> make(const ShardPlace& place, ShardJobPtr job, ShardId shard,
                                                    ShardSetup& setup);
  ~ShardService() override;

  void adopt_channel(transport::Arrival& arrival, Member worker);
  void adopt_peer(transport::Arrival& arrival, ShardId from);
  void set_roster(const Roster& roster);
  void fence(const Member& worker);
  // Answered by ShardSays.
  void report(bool at_once);
  // Answered by ShardPrepared.
  void prepare_cut(std::uint64_t attempt, bool holds);
  void abandon_cut(std::uint64_t attempt);
  // For the pacer only.
  void order_cut(std::uint64_t attempt, Step at);

 private:
  ShardService(const ShardPlace& place, ShardJobPtr job, ShardId shard, const PacerReport& restored, bool is_empty,
               const checkpoint::IsCancelled& is_cancelled);
  template <typename News>
  void tell(News news) {
    place_.upward(ShardNews{job_->job, job_->generation, std::move(news)});
  }
  void connect();
  void say(bool at_once);
  void keep_links();
  void bury_peer(ShardId peer);
  void give_up_marks();
  Duration longest_park() const;
  void copy_on(std::shared_ptr<ShardCopied> news);

  // ChannelOwner
  Result<std::span<float>> landing(ChannelId channel, Sequence sequence, const Push& push,
                                   std::uint64_t payload_bytes) override;
  void on_push(PushArrived& event, std::span<const float> payload) override;
  void on_pull(const PullArrived& event) override;
  void on_mark(const MarkArrived& event) override;
  void on_channel_lost(ChannelId channel, const std::string& why) override;
  std::span<const float> parameters(BucketId bucket) override;
  wire::ScratchBuffer& scratch() override { return *scratch_; }

  // PeerOwner
  void on_peer_open(ShardId peer) override;
  void on_peer_frame(ShardId peer, const wire::FrameHeader& header, transport::Bytes control) override;
  void on_peer_unreachable(ShardId peer, Duration lasts, const std::string& why) override;
  void on_peer_reached(ShardId peer) override;
  void on_peer_lost(ShardId peer, bool carried, Duration lasts, const std::string& why) override;

  // Outside
  void act(const Action& action) override;
  void before_update(BucketId bucket) override;
  void update_begins() override { update_began_ = daemon::now(); }
  void update_ended() override { figures_.apply.observe(to_seconds(daemon::now() - update_began_)); }

  void handle(const Event& event);
  template <typename Work>
  void timed(metrics::RpcFigures& figures, Work work);
  void act_on(const Admit& action);
  void act_on(const Refuse& action);
  void act_on(const CloseChannel& action);
  void act_on(const Reply& action);
  void act_on(const SendAcknowledge& action);
  void act_on(const SendStaged& action);
  void act_on(const SendCommit& action);
  void act_on(const SendNews& action);
  void act_on(const SendMarkTaken& action);
  void act_on(const SendCut& action);
  void act_on(const CopyForCheckpoint& action);
  void act_on(const MarksGivenUp& action);
  void act_on(const Fenced& action);
  void act_on(const RosterTaken& action);
  void act_on(const ReportNow& action);
  void act_on(const StepCounted& action);
  void act_on(const FailJob& action);
  // The store carries these out.
  void act_on(const Apply&) {}
  void act_on(const SumAndApply&) {}
  void act_on(const MeasureNorm&) {}

  std::vector<std::unique_ptr<WorkerChannel>>::iterator position(ChannelId channel);
  WorkerChannel* find(ChannelId channel);
  void remove(ChannelId channel);
  void send_to_peers(wire::FrameType type, transport::Bytes control);
  std::string name() const;

  // Constant.
  const ShardPlace place_;
  const ShardJobPtr job_;
  const ShardId id_;
  const std::uint64_t late_before_;  // late gradients before this generation
  const Instant made_ = daemon::now();
  const Duration thread_time_before_ = daemon::thread_time();

  // Owned by the loop.
  Shard shard_;
  std::optional<VisitedLog> visited_;  // pacer, where one is kept
  std::unique_ptr<checkpoint::InputFile> init_lock_;
  std::unique_ptr<wire::ScratchBuffer> scratch_;
  std::vector<std::unique_ptr<WorkerChannel>> channels_;  // ascending by number
  std::map<ShardId, std::unique_ptr<PeerLink>> peers_;    // at the pacer: links to all others; else: the link to the
                                                          // pacer
  std::uint64_t next_channel_ = 1;
  ShardFigures figures_;
  Instant update_began_;
  asio::steady_timer verdict_;                                  // runs while the chief decides about a lost peer
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with the timer's handler, which may outlive it
};

}  // namespace disttrain::psd
