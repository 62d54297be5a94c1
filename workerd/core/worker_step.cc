// Here WorkerCore does a step, from the plan of its batch to its push. It also runs evaluations here, and ends the
// worker's part in the job.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "workerd/core/worker_core.h"

#include "common/mutant.h"

namespace disttrain::workerd {

void WorkerCore::advance(Actions& out) {
  if (life_ == Life::kOpening || life_ == Life::kOpened || evaluations_.runs()) return;
  settle_answers(out);
  if (is_finished_) drop_compute(out);
  if (is_computing()) return;
  if (is_pulling_) return enter(Phase::kPull);
  if (evaluations_.pulls()) return run_evaluation(out);
  if (has_left()) return evaluations_.is_final_wanted() ? begin_evaluation(out) : enter(Phase::kIdle);
  if (!parameters_.are_trainable() && !is_stopping_ && !is_finished_) begin_pull(PullOf::kAll, out);
  plan_batches(out);
  if (is_pulling_) return enter(Phase::kPull);
  // In a pause the worker usually stops here. If it must still send marks, it goes on, because it can send them only
  // after the current push. If some frames of a push are sent already, it sends the others too.
  const bool is_push_begun = early() && is_whole() && !is_pushing() && channels_.has_frames();
  if (is_paused_ && !is_stopping_ && !mark_wanted_ && !is_push_begun) return enter(Phase::kWait);

  if (is_whole() && !is_pushing()) {
    if (!is_push_begun && (is_finished_ || is_void(computed_))) {
      computation_ = Computation::kNone;
    } else {
      begin_push(out);
    }
  }
  drop_stale_batches(out);
  const bool leaving = is_stopping_ || is_finished_ || (queue_.is_used_up() && !is_whole());
  if (is_pushing()) {
    // sync: when the job stops, the worker doesn't wait for the answer to its push. The other workers stop too, so the
    // step may never be committed.
    const bool abandon = is_stopping_ && sync() && channels_.are_pushes_sent() && !is_whole();
    const bool overlaps = pipeline_ || may_begin_early();
    if (!abandon && (leaving || is_whole() || !overlaps))
      return enter(channels_.are_pushes_sent() ? Phase::kWait : Phase::kPush);
  }
  if (leaving) return leave(out);
  // This worker was asked for first values, and then the shards got those of another one. Its own values, which are in
  // a gradient buffer, must be loaded, and the frames with them taken, before its first step.
  if (values_.is_loading() || (!is_pushing() && !channels_.are_pushes_complete()))
    return enter(channels_.are_pushes_sent() ? Phase::kWait : Phase::kPush);
  if (evaluations_.is_due(parameters_.version())) return begin_evaluation(out);
  if (ssp() && leases() && queue_.is_empty() && !is_pushing() && is_at_work_) return say_farewell(out);
  if (queue_.is_empty() && !is_pushing() && queue_.must_look_ahead() && !has_looked_ahead_) {
    has_looked_ahead_ = true;
    begin_pull(PullOf::kAll, out);
    return enter(Phase::kPull);
  }
  if (!queue_.is_ready()) return enter(Phase::kInput);
  if (ssp() && !is_at_work_) return begin_work(out);
  begin_compute(out);
}

void WorkerCore::settle_answers(Actions& out) {
  if (is_pushing() && channels_.are_pushes_complete() && !holds_answer_back()) {
    const bool is_farewell = std::exchange(pushing_, Pushing::kNothing) == Pushing::kFarewell;
    if (!is_farewell) phases_.count_step(pushed_.order.examples);
    if (!is_farewell && !pushed_.final && !is_pulling_) take_parameters(out);
    // The next computation began while these answers were under way.
    if (computation_ != Computation::kNone) {
      if (begins_early_) computed_.pull_versions = parameters_.versions();
      if (begins_early_ && is_computing()) phases_.note_all_parameters(now_);
      if (early()) channels_.begin_push();
    }
  }
  if (is_pulling_ && channels_.are_pulls_complete()) {
    is_pulling_ = false;
    take_parameters(out);
  }
}

void WorkerCore::take_parameters(Actions& out) {
  // After the job's last step a shard may answer without parameters. So the buffer that received the
  // answers may be incomplete.
  if (is_finished_ && pipeline_ && !has_left()) return;
  // If this worker's push was late, one shard may have answered before a commit and another after it. The worker then
  // pulls again from the shards with the older version.
  const bool is_mixed = sync() && !is_finished_ && !channels_.have_one_version();
  if (is_mixed && !DISTTRAIN_MUTANT(kMixedVersions)) return begin_pull(PullOf::kLagging, out);
  const bool is_first = parameters_.take(channels_, pulls_averages());
  follow_roster(is_first, out);
}

void WorkerCore::follow_roster(bool is_first, Actions& out) {
  if (!is_first && roster_ == pacer_roster_) return;
  roster_ = pacer_roster_;
  if (sync() && leases()) queue_.change_roster(roster_, Step(next_clock()), is_first, out);
}

void WorkerCore::plan_batches(Actions& out) {
  if (is_stopping_ || is_finished_) return;
  queue_.fill(out);
  const double seconds = to_seconds(now_ - started_at_);
  queue_.request_lease(seconds > 0 ? static_cast<double>(progress().examples) / seconds : 0.0, out);
}

void WorkerCore::drop_stale_batches(Actions& out) {
  if (!sync() || !leases() || !parameters_.is_any()) return;
  queue_.skip_to(Step(next_clock()), out);
  plan_batches(out);
}

void WorkerCore::begin_compute(Actions& out) {
  const std::uint64_t clock = next_clock();
  if (!sync()) clock_ = clock;
  computed_.order = queue_.take();
  computed_.clock = clock;
  computed_.buffer = pipeline_ ? 1 - computed_.buffer : 0;
  computed_.roster = roster_;
  computed_.pull_versions = parameters_.versions();
  computation_ = Computation::kUnderWay;
  if (early() && !is_pushing()) channels_.begin_push();
  plan_batches(out);
  const ClipConfig& clip = facts_.config.train.clip;
  Compute compute;
  compute.batch = computed_.order.ticket;
  compute.step = clock;
  compute.rank = rank_;
  compute.parameters = parameters_.newest();
  compute.gradients = computed_.buffer;
  compute.early = early();
  compute.clip_norm = !sync() && clip.kind == ClipKind::kGlobalNorm ? clip.value : 0.0;
  const bool is_early = is_pushing() && begins_early_;
  if (is_early)
    for (const Channel& channel : channels_) channel.add_awaited(compute.awaited);
  phases_.begin_compute(is_early, now_);
  out.push_back(std::move(compute));
}

// After the job's last step the next one isn't needed, and the parameters that it waits for may not come. If some of
// its gradients are sent already, the others are sent too.
void WorkerCore::drop_compute(Actions& out) {
  if (!begins_early_ || !is_computing() || (!is_pushing() && channels_.has_frames())) return;
  computation_ = Computation::kNone;
  out.push_back(DropCompute{});
}

void WorkerCore::begin_push(Actions& out) {
  if (!early()) {
    if (sync()) computed_.clock = next_clock();
    channels_.begin_push();
  }
  computed_.final = ssp() && queue_.is_used_up();
  if (computed_.final) is_at_work_ = false;
  pushing_ = Pushing::kGradient;
  computation_ = Computation::kNone;
  pushed_ = computed_;
  add_last_frames(out);
}

void WorkerCore::add_ready_frames(std::uint64_t ready_end, Actions& out) {
  for (Channel& channel : channels_) {
    while (channel.frames() + 1 < channel.buckets()) {
      const Bucket& bucket = facts_.layout.buckets[channel.next_bucket().value];
      if (bucket.flat_begin + bucket.words > ready_end && !DISTTRAIN_MUTANT(kFinalTooEarly)) break;
      channel.add_frame(frame_of(computed_, channel, false), computed_.buffer, true, out);
    }
  }
}

void WorkerCore::add_last_frames(Actions& out) {
  const bool skipped = pushed_.order.examples > 0 && !std::isfinite(pushed_.loss);
  if (!skipped) add_ready_frames(std::numeric_limits<std::uint64_t>::max(), out);
  for (Channel& channel : channels_) {
    Push push = frame_of(pushed_, channel, true);
    push.skipped = skipped;
    if (skipped && push.want != Want::kNothing) push.want = Want::kAll;
    channel.add_frame(std::move(push), pushed_.buffer, !skipped, out);
  }
}

Push WorkerCore::frame_of(const Gradient& gradient, const Channel& channel, bool last) const {
  Push push;
  push.bucket = channel.next_bucket();
  push.clock = Step(gradient.clock);
  push.pull_version = gradient.pull_versions[channel.shard().value];
  const bool streams = facts_.config.train.mode == Mode::kAsync && channel.buckets() > 1;
  push.want = streams ? Want::kBucket : (last && !gradient.final ? Want::kAll : Want::kNothing);
  if (sync() && leases()) push.roster = gradient.roster;
  if (!last) return push;
  push.last = true;
  push.final = gradient.final;
  push.examples = static_cast<std::uint32_t>(gradient.order.examples);
  push.loss = gradient.loss;
  if (channel.shard() == ShardId(0)) {  // the pacer keeps the ledger
    push.lease = gradient.order.lease;
    push.epoch = gradient.order.epoch;
    push.visited = gradient.order.positions;
  }
  return push;
}

// Sends the marks that the chief asked for. While a gradient is being computed, its first buckets may already be sent.
// The marks then wait, because a mark must not be in the middle of a push. As long as the push before isn't complete,
// none of its buckets is sent.
void WorkerCore::place_marks(Actions& out) {
  const bool in_a_push = early() && !is_pushing() && computation_ != Computation::kNone;
  if (!mark_wanted_ || life_ == Life::kOpening || in_a_push) return;
  channels_.mark(*mark_wanted_, out);
  mark_wanted_.reset();
}

void WorkerCore::begin_pull(PullOf what, Actions& out) {
  is_pulling_ = true;
  const Pull pull{++last_pull_id_, what == PullOf::kWork, Step(clock_), pulls_averages()};
  channels_.begin_pull(pull, what == PullOf::kLagging, out);
}

// Sends the model's initial values to the shards that asked for them. If a shard asks again, after a reconnect, its
// channel repeats what was lost.
void WorkerCore::send_values(Actions& out) {
  for (const ShardId shard : values_.take()) {
    Channel& channel = channels_.at(shard);
    if (!channel.push_complete()) continue;
    channel.begin_push();
    while (channel.frames() < channel.buckets()) {
      Push push;
      push.bucket = channel.next_bucket();
      push.initial = true;
      push.last = channel.frames() + 1 == channel.buckets();
      channel.add_frame(std::move(push), kValuesBuffer, true, out);
    }
  }
}

// ssp: from here on the other workers wait if they are too far ahead of this worker. So the core calls this only when a
// batch is ready. It first pulls new parameters, because those that it has may be older than
// train.staleness allows.
void WorkerCore::begin_work(Actions& out) {
  if (is_pushing()) return enter(Phase::kWait);
  is_at_work_ = true;
  begin_pull(PullOf::kWork, out);
  enter(Phase::kPull);
}

// ssp: sends an empty push, which says that this worker has no more records, or none before its next lease. Without it
// the other workers would wait for this worker's next step. If those workers held all leases, the job would stop for
// ever.
void WorkerCore::say_farewell(Actions& out) {
  is_at_work_ = false;
  pushing_ = Pushing::kFarewell;
  ++clock_;
  for (Channel& channel : channels_) {
    channel.begin_push();
    Push push;
    push.bucket = channel.next_bucket();
    push.clock = Step(clock_);
    push.pull_version = parameters_.versions()[channel.shard().value];
    push.last = true;
    push.final = true;
    channel.add_frame(push, 0, false, out);
  }
  enter(Phase::kWait);
}

void WorkerCore::leave(Actions& out) {
  if (ssp() && is_at_work_ && !is_finished_ && parameters_.is_any()) return say_farewell(out);
  life_ = Life::kLeft;
  queue_.drop_all(out);
  out.push_back(ReportFinished{progress().steps});
  if (evaluations_.is_final_wanted()) return begin_evaluation(out);
  enter(Phase::kIdle);
}

// ---- evaluation: it runs between two steps, or after the last step ----

// With evaluate.average the worker pulls the averages into its buffer of parameters. After the evaluation it pulls the
// parameters again.
void WorkerCore::begin_evaluation(Actions& out) {
  if (sync() && !has_left() && !averages()) return run_evaluation(out);
  if (is_pushing() && !has_left()) return enter(Phase::kWait);
  evaluations_.pull();
  begin_pull(PullOf::kAll, out);
  enter(Phase::kPull);
}

void WorkerCore::run_evaluation(Actions& out) {
  evaluations_.run(has_left(), parameters_.version(), now_);
  enter(Phase::kEvaluate);
  out.push_back(RunEvaluation{parameters_.newest()});
}

}  // namespace disttrain::workerd
