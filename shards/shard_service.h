// The shell of one shard. It connects the shard's rules and bytes (class Shard) with the workers, the other shards and
// the main thread. Make all calls on the loop of the shard's thread. News for the main thread goes through
// ShardPlace::upward.
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
#include "shards/peer_link.h"
#include "shards/shard_figures.h"
#include "shards/shard_job.h"
#include "shards/shard_origin.h"
#include "shards/shard_setup.h"
#include "shards/shard_trace.h"
#include "shards/store/shard.h"
#include "shards/visited_log.h"
#include "shards/worker_channel.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::shards {

// The structs down to ShardNews are news from a shard to the main thread.
// The shard has its memory and its first values.
struct ShardMade {
  ShardId shard;
};
// The shard is made and linked to the pacer.
struct ShardReady {
  ShardId shard;
};
struct ShardSays {
  ShardId shard;
  Step version;
  // The pacer's report; null if this shard isn't the pacer. A pointer, because a copy of a long ledger would take time.
  std::shared_ptr<const PacerReport> pacer;
  bool at_once = false;  // true: the main thread must send a heartbeat with this report at once
  ShardFigures figures{};
};
// The shard is prepared for a checkpoint attempt, so marks and orders to cut may come.
struct ShardPrepared {
  std::uint64_t attempt = 0;
  ShardId shard;
};
// The shard has taken its copy for a checkpoint. `copy` is null if the shard couldn't, because its previous copy is
// still being written.
struct ShardCopied {
  std::uint64_t attempt = 0;
  ShardId shard;
  ShardEntry entry;
  std::optional<PacerReport> pacer;
  std::shared_ptr<const ShardCopy> copy;
  Duration cut{};     // the longest time for which the copying blocked the loop
  Duration parked{};  // the time from the first mark to the cut
};
// The shard has recorded the steps of train.profile_steps, or it ends. A pointer, because the events take megabytes.
struct ShardTraced {
  std::shared_ptr<TraceTake> take;
};
// Any of the news above. By the job and generation the main thread recognizes late news of a dropped shard, and ignores
// it.
struct ShardNews {
  JobId job;
  Generation generation;
  std::variant<ShardMade, ShardReady, ShardSays, ShardPrepared, ShardCopied, ShardTraced, wire::ControlMessage> what;
};

// A shard uses these parts of its thread and of its process.
struct ShardPlace {
  asio::io_context& loop;
  transport::Transport& transport;
  checkpoint::Files& files;
  daemon::Log& log;
  std::atomic<std::uint64_t>& turns;             // the shard increments this number whenever it makes progress
  std::function<void(const ShardNews&)> upward;  // posts news to the main thread; any thread may call it
};

class ShardService final : private ChannelOwner, private PeerOwner, private Outside {
 public:
  // Makes the shard with its memory and its first values, which takes time. The shard sends ShardMade then, and
  // ShardReady when it is linked to the pacer. Returns the errors of ShardOrigin and VisitedLog, or kTemporary if
  // `setup` was abandoned. Throws std::bad_alloc.
  static Result<std::unique_ptr<ShardService>> make(const ShardPlace& place, ShardJobPtr job, ShardId shard,
                                                    ShardSetup& setup);
  ~ShardService() override;

  void adopt_channel(transport::Arrival& arrival, Member worker);
  void adopt_peer(transport::Arrival& arrival, ShardId from);
  void set_roster(const Roster& roster, bool ends);
  void fence(const Member& worker);
  // Answered by ShardSays.
  void report(bool at_once);
  // Answered by ShardPrepared.
  void prepare_cut(std::uint64_t attempt, bool holds);
  void abandon_cut(std::uint64_t attempt);
  // For the pacer only.
  void order_cut(std::uint64_t attempt, Step at);

 private:
  ShardService(const ShardPlace& place, ShardJobPtr job, ShardId shard, const ShardOrigin& origin,
               const checkpoint::IsCancelled& is_cancelled);
  template <typename News>
  void tell(News news) {
    place_.upward(ShardNews{job_->job, job_->generation, std::move(news)});
  }
  void connect();
  void say(bool at_once);
  void look_after_links();
  void keep_links();
  void bury_peer(ShardId peer);
  void give_up_marks();
  Duration longest_park() const;
  void copy_on(std::shared_ptr<ShardCopied> news);

  // ChannelOwner
  Result<std::span<float>> landing(ChannelId channel, Sequence sequence, const Push& push,
                                   std::uint64_t payload_bytes) override;
  Result<std::span<const float>> lend(ChannelId channel, Sequence sequence, const Push& push,
                                      std::span<const float> payload, std::shared_ptr<const void> keeps) override;
  void on_push(PushArrived& event, std::span<const float> payload) override;
  void on_pull(const PullArrived& event) override;
  void on_mark(const MarkArrived& event) override;
  void on_channel_lost(ChannelId channel, const std::string& why) override;
  std::span<const float> values(const Parameters& answer) override;
  wire::ScratchBuffer& scratch() override { return *scratch_; }
  ShardTrace& trace() override { return trace_; }

  // PeerOwner
  void on_peer_open(ShardId peer) override;
  void on_peer_frame(ShardId peer, const wire::FrameHeader& header, transport::Bytes control) override;
  void on_peer_unreachable(ShardId peer, Duration lasts, const std::string& why) override;
  void on_peer_reached(ShardId peer) override;
  void on_peer_lost(ShardId peer, bool carried, Duration lasts, const std::string& why) override;

  // Outside
  void act(const Action& action) override;
  void before_update(BucketId bucket) override;
  void goes_on() override;
  void update_begins() override { update_began_ = daemon::now(); }
  void update_ended() override;

  void handle(const Event& event);
  // Call it after each event. Sends the events of the trace to the main thread once the last profiled step is done.
  void follow_trace();
  void tell_trace(std::optional<TraceTake> take);
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
  // The store carries out these three actions.
  void act_on(const Apply&) {}
  void act_on(const SetParameters&) {}
  void act_on(const SumAndApply&) {}
  void act_on(const JudgeStep&) {}
  void act_on(const PrepareUpdate&) {}

  std::vector<std::unique_ptr<WorkerChannel>>::iterator position(ChannelId channel);
  WorkerChannel* find(ChannelId channel);
  void remove(ChannelId channel);
  void send_to_peers(wire::FrameType type, transport::Bytes control);
  std::string name() const;

  // Constant.
  const ShardPlace place_;
  const ShardJobPtr job_;
  const ShardId id_;
  const std::uint64_t late_before_;  // number of late pushes before this generation
  const Instant made_ = daemon::now();
  Instant showed_life_ = made_;  // to workers and peers
  const Duration thread_time_before_ = daemon::thread_time();

  // Owned by the loop.
  Shard shard_;
  std::optional<VisitedLog> visited_;  // only at the pacer, and only if the job keeps this log
  std::unique_ptr<checkpoint::InputFile> init_lock_;
  std::unique_ptr<wire::ScratchBuffer> scratch_;
  std::vector<std::unique_ptr<WorkerChannel>> channels_;  // ascending by number
  // At the pacer: the links to all other shards. At another shard: its link to the pacer.
  std::map<ShardId, std::unique_ptr<PeerLink>> peers_;
  std::string complaint_;  // the last logged reason why a peer can't be reached; only one peer is dialled
  std::uint64_t next_channel_ = 1;
  ShardFigures figures_;
  ShardTrace trace_;
  Instant update_began_;
  asio::steady_timer life_;     // until the shard looks after its links again
  asio::steady_timer verdict_;  // limits how long the shard waits for the chief to act after a peer was lost
  // False once the shard is destroyed. Handlers on the loop share it, because they may run after that.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace disttrain::shards
