// The rules of one shard of one job, as a pure state machine: the same events give the same actions. The core sees only
// metadata. The store has the tensor bytes, and the shell has the sockets.
//
// The rules are in five files. shard_core.cc has the rules of all modes (channels, exactly-once, rosters, fences).
// shard_async.cc has the rules of async and ssp, shard_sync.cc the rules of sync, shard_cut.cc the rules of
// checkpoints, and shard_values.cc those of the first values. What the core knows lies in smaller state machines, each
// with a file of its own: OwnBuckets, MemberTable, FirstValues, CutAttempts, Staging, OpenStep, SyncDecider, Clocks,
// OwnOrder, Pacer and Ledger.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/config/job_config.h"
#include "common/layout.h"
#include "common/mutant.h"
#include "common/time.h"
#include "shards/core/clocks.h"
#include "shards/core/cut_attempts.h"
#include "shards/core/events.h"
#include "shards/core/first_values.h"
#include "shards/core/members.h"
#include "shards/core/open_step.h"
#include "shards/core/own_buckets.h"
#include "shards/core/own_order.h"
#include "shards/core/pacer.h"
#include "shards/core/staging.h"
#include "shards/core/sync_decider.h"

namespace disttrain::shards {

struct ShardOptions {
  ShardId shard;
  TrainSection train;        // train.steps must be the job's number of global steps, also if job.toml gives epochs
  Roster roster;             // the first roster
  std::uint32_t places = 0;  // number of workers to make memory for; 0 = the number of workers in `roster`
  std::uint32_t credits = 4;
  bool waits_for_lost = false;      // sync: each step needs the whole roster (job.on_worker_loss = "wait")
  std::uint64_t warmup_steps = 0;   // pacer: number of first steps whose time isn't measured
  std::uint64_t train_records = 0;  // pacer: number of records in an epoch
  bool awaits_values = false;       // true: the workers bring the first values of the parameters
  // pacer of async and ssp with data.sharding = "none": the batches that each worker had done of its own order. None:
  // the workers get leases.
  std::optional<std::map<TaskId, Step>> own_orders{};
  bool tells_visits = false;  // pacer: true: return the action StepCounted for each step
  PacerReport restored;       // the report in the restored checkpoint; every shard begins at its global step
};

class ShardCore {
 public:
  // The core keeps no reference to `layout`.
  ShardCore(const Layout& layout, const ShardOptions& options);
  ShardCore(const ShardCore&) = delete;

  // Chooses the buffer for the payload of a push frame, before the payload is received. Changes nothing. The result is
  // valid until the next event of this channel. kData: the frame breaks a rule, and the caller must close the channel.
  // For example, the channel isn't open, a frame before this one is missing, the worker has no credit left, the bucket
  // belongs to another shard or has another length, or the step is too far ahead.
  Result<Landing> landing(ChannelId channel, Sequence sequence, const Push& push, std::uint64_t payload_bytes) const;

  // async, ssp: the update that the frame causes if its payload is finite. None if it causes none. Changes nothing.
  std::optional<Apply> update_by(const PushArrived& event) const;

  // Handles an event and appends the resulting actions to `actions`.
  void step(Instant now, const Event& event, Actions& actions);
  // Handles a push frame without copying it into an Event, because push frames are the most frequent events.
  void step(Instant now, const PushArrived& event, Actions& actions);

  bool is_pacer() const { return shard_.value == 0; }
  // The shard's version: the number of steps that it has counted. At the pacer this is the global step.
  Step version() const { return version_; }
  // Pacer only.
  PacerReport report() const;
  const StepsHistogram& gradient_staleness() const { return pacer_.gradient_staleness(); }
  // Number of answers that wait: in sync for a commit, in ssp for slower workers.
  std::size_t parked() const;

 private:
  // All modes: shard_core.cc.
  void on(Instant now, const ChannelOpened& event, Actions& actions);
  void on(Instant now, const ChannelClosed& event, Actions& actions);
  void on(Instant now, const PushArrived& event, Actions& actions);
  void on(Instant now, const PullArrived& event, Actions& actions);
  void on(Instant now, const StepJudged& event, Actions& actions);
  void on(Instant now, const UpdateFailed& event, Actions& actions);
  void on(Instant now, const StagedArrived& event, Actions& actions);
  void on(Instant now, const CommitArrived& event, Actions& actions);
  void on(Instant now, const NewsArrived& event, Actions& actions);
  void on(Instant now, const PeerOpened& event, Actions& actions);
  void on(Instant now, const RosterSet& event, Actions& actions);
  void on(Instant now, const Fence& event, Actions& actions);
  // Checkpoints: shard_cut.cc.
  void on(Instant now, const AttemptPrepared& event, Actions& actions);
  void on(Instant now, const AttemptAbandoned& event, Actions& actions);
  void on(Instant now, const CutOrdered& event, Actions& actions);
  void on(Instant now, const CutArrived& event, Actions& actions);
  void on(Instant now, const MarkArrived& event, Actions& actions);
  void on(Instant now, const MarksAwaited& event, Actions& actions);

  // The first values that workers bring: shard_values.cc.
  void ask_for_values(Actions& actions);
  void take_values(MemberState& member, const PushArrived& event, Actions& actions);
  void answer_pull(MemberState& member, Pull pull, Actions& actions);

  // Checks how the parts fit together; every transition leaves it so.
  void check_parts() const;

  Status check(const MemberState& member, Sequence sequence, const Push& push, std::uint64_t payload_bytes) const;
  bool take_roster(const Roster& roster, Actions& actions);
  void tell_news(Actions& actions) const;
  void look_again(Instant now, Actions& actions);
  void duplicate(MemberState& member, const Push& push, Actions& actions);
  // `pull`: the pull that this answers, or Pull{} if this answers a push. The answer carries pull.clock to the worker.
  void answer_all(MemberState& member, PushOutcome outcome, const Pull& pull, Actions& actions);
  void answer_bucket(MemberState& member, BucketId bucket, PushOutcome outcome, bool last, const Pull& pull,
                     Actions& actions);
  void acknowledge(MemberState& member, PushOutcome outcome, Actions& actions);
  void acknowledge_some(MemberState& member, Actions& actions);
  void answer_parked(MemberState& member, Actions& actions);
  void close(MemberState& member, std::string reason, Actions& actions);
  void fail_job(ErrorCode code, std::string reason, Actions& actions);
  void counted(Actions& actions, bool epoch_done);
  bool finished() const;
  bool clips() const { return train_.clip.kind == ClipKind::kGlobalNorm; }
  UpdateAt update_at() const;
  double state_weight(const MemberState& member) const;
  Apply apply_of(const MemberState& member, BucketId bucket) const;

  // async, ssp: shard_async.cc.
  void push_async(Instant now, MemberState& member, const PushArrived& event, Actions& actions);
  void answer_async(MemberState& member, const PushArrived& event, PushOutcome outcome, Actions& actions);
  void count_async(Instant now, const MemberState& member, const Push& push, Actions& actions);
  void answer_within_bound(Actions& actions);

  // sync: shard_sync.cc.
  void push_sync(Instant now, MemberState& member, const PushArrived& event, Actions& actions);
  void dropped_sync(MemberState& member, const Push& push, PushOutcome outcome, Actions& actions);
  void advance_sync(Instant now, Actions& actions);
  std::optional<Staged> staged_set() const;
  void report_staged(const Staged& staged, Actions& actions);
  void report_staged_again(Actions& actions) const;
  bool decide_sync(Instant now, Actions& actions);
  bool commit_sync(Instant now, const Commit& commit, Actions& actions);
  const StagedPush* staged_push(Rank rank, Step step) const;
  std::shared_ptr<SumPlan> plan_sum(const RankSet& members, Step step);
  std::shared_ptr<const SumPlan> plan_commit(const Commit& commit);
  void settle_outcomes(const Commit& commit);
  void apply_and_answer(const std::shared_ptr<const SumPlan>& plan, Actions& actions);
  void tell_visits(const Commit& commit, Actions& actions) const;
  void count_sync(Instant now, const Commit& commit, Actions& actions);
  void begin_step_anew(Actions& actions);
  bool is_void(const Push& push) const {
    if (DISTTRAIN_MUTANT(kVoidPushesCount)) return false;
    return push.roster.value != 0 && push.roster < members_.roster().version;
  }

  void cut(Instant now, Actions& actions);
  void cut_if_ordered(Instant now, Actions& actions);
  void cut_if_all_marked(Instant now, Actions& actions);
  void give_up_attempt(Actions& actions);
  void let_marked_go(std::uint64_t attempt, Actions& actions);
  void end_hold(Actions& actions);

  // Constant.
  const ShardId shard_;
  const std::uint32_t shards_;
  const TrainSection train_;
  const bool is_by_variable_;  // UpdateRule::is_by_variable()
  const std::uint32_t credits_;
  const bool waits_for_lost_;
  const bool tells_visits_;
  const std::uint32_t places_;
  const OwnBuckets buckets_;

  // State.
  bool failed_ = false;
  bool ended_ = false;           // pacer, sync: the chief said that no step may be committed any more
  bool pacer_finished_ = false;  // async, ssp, other shards: the pacer said that all steps are done
  Step version_;
  MemberTable members_;
  FirstValues values_;
  CutAttempts attempts_;
  Clocks clocks_;                      // ssp
  std::optional<OwnOrder> own_order_;  // async and ssp, data.sharding = "none"
  Staging staging_;                    // sync
  OpenStep open_step_;                 // sync
  std::vector<MemberState*> waiting_;  // sync: memory of apply_and_answer()
  SyncDecider decider_;                // pacer, sync
  Pacer pacer_;                        // pacer
};

}  // namespace disttrain::shards
