// Here WorkerCore does a step, from the plan of its batch to its push. It also runs evaluations here, and ends the
// worker's part in the job.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "workerd/core/worker_core.h"

#include "common/mutant.h"

namespace disttrain::workerd {
namespace {

// The worker asks for a lease this many seconds before it needs one. In this time a chief that was killed can restart.
constexpr double kSecondsAhead = 2.0;

}  // namespace

void WorkerCore::advance(Actions& out) {
  if (!started_ || evaluation_ == Evaluation::kRun) return;
  settle_answers(out);
  if (finished_) drop_compute(out);
  if (computing_) return;
  if (pulling_) return enter(Phase::kPull);
  if (evaluation_ == Evaluation::kPull) return run_evaluation(out);
  if (left_) return final_wanted_ ? begin_evaluation(out) : enter(Phase::kIdle);
  const bool needs_parameters = !have_parameters_ || have_averages_;
  if (needs_parameters && !stopping_ && !finished_) begin_pull(PullOf::kAll, out);
  plan_batches(out);
  if (pulling_) return enter(Phase::kPull);
  // In a pause the worker usually stops here. If it must still send marks, it goes on, because it can send them only
  // after the current push. If some frames of a push are sent already, it sends the others too.
  const bool is_push_begun = early() && computed_whole_ && !pushing_ && has_frames();
  if (paused_ && !stopping_ && !mark_wanted_ && !is_push_begun) return enter(Phase::kWait);

  if (computed_whole_ && !pushing_) {
    if (!is_push_begun && (finished_ || is_void(computed_))) {
      computed_whole_ = false;
    } else {
      begin_push(out);
    }
  }
  drop_stale_batches(out);
  const bool leaving = stopping_ || finished_ || (data_used_up() && !computed_whole_);
  if (pushing_) {
    // sync: when the job stops, the worker doesn't wait for the answer to its push. The other workers stop too, so the
    // step may never be committed.
    const bool abandon = stopping_ && sync() && pushes_sent() && !computed_whole_;
    const bool overlaps = pipeline_ || may_begin_early();
    if (!abandon && (leaving || computed_whole_ || !overlaps))
      return enter(pushes_sent() ? Phase::kWait : Phase::kPush);
  }
  if (leaving) return leave(out);
  if (evaluation_due()) return begin_evaluation(out);
  if (ssp() && leases() && planned_.empty() && !pushing_ && at_work_) return say_farewell(out);
  if (planned_.empty() && !pushing_ && must_look_ahead() && !looked_ahead_) {
    looked_ahead_ = true;
    begin_pull(PullOf::kAll, out);
    return enter(Phase::kPull);
  }
  if (planned_.empty() || !planned_.front().ready) return enter(Phase::kInput);
  if (ssp() && !at_work_) return begin_work(out);
  begin_compute(out);
}

void WorkerCore::settle_answers(Actions& out) {
  if (pushing_ && pushes_complete() && !holds_answer_back()) {
    pushing_ = false;
    if (!farewell_) {
      ++progress_.steps;
      progress_.examples += pushed_.order.examples;
    }
    if (!farewell_ && !pushed_.final && !pulling_) take_parameters(out);
    // The next computation began while these answers were under way.
    if (computing_ || computed_whole_) {
      if (begins_early_) computed_.pull_versions = fresh_versions_;
      if (begins_early_ && computing_) note_all_parameters();
      if (early())
        for (Channel& channel : channels_) channel.begin_push();
    }
  }
  if (pulling_ && pulls_complete()) {
    pulling_ = false;
    take_parameters(out);
  }
}

void WorkerCore::take_parameters(Actions& out) {
  // After the job's last step a shard may answer without parameters. So the buffer that received the
  // answers may be incomplete.
  if (finished_ && pipeline_ && !left_) return;
  const auto version = [](const Channel& channel) { return channel.version(); };
  if (sync() && !finished_) {
    // If this worker's push was late, one shard may have answered before a commit and another after it. The worker then
    // pulls again from the shards with the older version.
    const bool equal = std::all_of(channels_.begin(), channels_.end(), [this, version](const Channel& channel) {
      return version(channel) == version(channels_[0]);
    });
    if (!equal && !DISTTRAIN_MUTANT(kMixedVersions)) return begin_pull(PullOf::kLagging, out);
  }
  if (pipeline_) fresh_ = 1 - fresh_;
  std::transform(channels_.begin(), channels_.end(), fresh_versions_.begin(), version);
  have_parameters_ = true;
  have_averages_ = pulls_averages();
  follow_roster(out);
}

void WorkerCore::follow_roster(Actions& out) {
  if (roster_known_ && roster_ == pacer_roster_) return;
  const bool is_first = !std::exchange(roster_known_, true);
  roster_ = pacer_roster_;
  if (!sync() || !leases()) return;
  plan_.change_roster(roster_, Step(next_clock()));
  if (!is_first) lease_requested_ = false;
  for (; !planned_.empty(); planned_.pop_front()) out.push_back(DropBatch{planned_.front().order.ticket});
}

void WorkerCore::plan_batches(Actions& out) {
  if (stopping_ || finished_) return;
  while (planned_.size() < facts_.config.data.prefetch) {
    std::optional<BatchOrder> order = plan_.next();
    if (!order) break;
    order->ticket = last_ticket_ = last_ticket_.next();
    out.push_back(RequestBatch{*order});
    planned_.push_back(Planned{std::move(*order), false});
  }
  if (!leases() || lease_requested_ || lease_refused_) return;
  const double seconds = to_seconds(now_ - started_at_);
  const double rate = seconds > 0 ? static_cast<double>(progress_.examples) / seconds : 0.0;
  const auto ahead = static_cast<std::uint64_t>(std::min(rate * kSecondsAhead, 1e15));
  if (!plan_.runs_dry(facts_.config.data.prefetch, ahead)) return;
  lease_requested_ = true;
  out.push_back(RequestLease{rate});
}

void WorkerCore::drop_stale_batches(Actions& out) {
  if (!sync() || !leases() || !have_parameters_) return;
  const Step next(next_clock());
  while (!planned_.empty() && planned_.front().order.step < next) {
    out.push_back(DropBatch{planned_.front().order.ticket});
    planned_.pop_front();
  }
  plan_.skip_to(next);
  plan_batches(out);
}

void WorkerCore::begin_compute(Actions& out) {
  const std::uint64_t clock = next_clock();
  if (!sync()) clock_ = clock;
  computed_.order = std::move(planned_.front().order);
  planned_.pop_front();
  computed_.clock = clock;
  computed_.buffer = pipeline_ ? 1 - computed_.buffer : 0;
  computed_.roster = roster_;
  computed_.pull_versions = fresh_versions_;
  computing_ = true;
  if (early() && !pushing_)
    for (Channel& channel : channels_) channel.begin_push();
  plan_batches(out);
  const ClipConfig& clip = facts_.config.train.clip;
  Compute compute;
  compute.batch = computed_.order.ticket;
  compute.step = clock;
  compute.rank = rank_;
  compute.parameters = fresh_;
  compute.gradients = computed_.buffer;
  compute.early = early();
  compute.clip_norm = !sync() && clip.kind == ClipKind::kGlobalNorm ? clip.value : 0.0;
  if (pushing_ && begins_early_)
    for (const Channel& channel : channels_) channel.add_awaited(compute.awaited);
  enter_compute();
  out.push_back(std::move(compute));
}

// After the job's last step the next one isn't needed, and the parameters that it waits for may not come. If some of
// its gradients are sent already, the others are sent too.
void WorkerCore::drop_compute(Actions& out) {
  if (!begins_early_ || !computing_ || (!pushing_ && has_frames())) return;
  computing_ = false;
  out.push_back(DropCompute{});
}

void WorkerCore::begin_push(Actions& out) {
  if (!early()) {
    if (sync()) computed_.clock = next_clock();
    for (Channel& channel : channels_) channel.begin_push();
  }
  computed_.final = ssp() && data_used_up();
  if (computed_.final) at_work_ = false;
  pushing_ = true;
  farewell_ = false;
  computed_whole_ = false;
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
  const bool in_a_push = early() && !pushing_ && (computing_ || computed_whole_);
  if (!mark_wanted_ || !opened_ || in_a_push) return;
  for (Channel& channel : channels_) channel.mark(*mark_wanted_, out);
  mark_wanted_.reset();
}

void WorkerCore::begin_pull(PullOf what, Actions& out) {
  pulling_ = true;
  const Pull pull{++last_pull_id_, what == PullOf::kWork, Step(clock_), pulls_averages()};
  Step newest;
  for (const Channel& channel : channels_) newest = std::max(newest, channel.version());
  for (Channel& channel : channels_)
    if (what != PullOf::kLagging || channel.version() < newest) channel.begin_pull(pull, out);
}

// Sends the model's initial values to the shards that asked for them. If a shard asks again, after a reconnect, its
// channel repeats what was lost.
void WorkerCore::send_values(Actions& out) {
  for (const ShardId shard : std::exchange(values_wanted_, {})) {
    Channel& channel = channels_.at(shard.value);
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
  if (pushing_) return enter(Phase::kWait);
  at_work_ = true;
  begin_pull(PullOf::kWork, out);
  enter(Phase::kPull);
}

// ssp: sends an empty push, which says that this worker has no more records, or none before its next lease. Without it
// the other workers would wait for this worker's next step. If those workers held all leases, the job would stop for
// ever.
void WorkerCore::say_farewell(Actions& out) {
  at_work_ = false;
  pushing_ = true;
  farewell_ = true;
  ++clock_;
  for (Channel& channel : channels_) {
    channel.begin_push();
    Push push;
    push.bucket = channel.next_bucket();
    push.clock = Step(clock_);
    push.pull_version = fresh_versions_[channel.shard().value];
    push.last = true;
    push.final = true;
    channel.add_frame(push, 0, false, out);
  }
  enter(Phase::kWait);
}

void WorkerCore::leave(Actions& out) {
  if (ssp() && at_work_ && !finished_ && have_parameters_) return say_farewell(out);
  left_ = true;
  for (; !planned_.empty(); planned_.pop_front()) out.push_back(DropBatch{planned_.front().order.ticket});
  out.push_back(ReportFinished{progress_.steps});
  if (final_wanted_) return begin_evaluation(out);
  enter(Phase::kIdle);
}

// ---- evaluation: it runs between two steps, or after the last step ----

bool WorkerCore::evaluation_due() {
  const std::uint64_t every = facts_.config.evaluate.every_steps;
  if (!evaluates_ || every == 0) return false;
  // This worker doesn't run evaluations that were due before it began.
  if (!evaluated_) evaluated_ = fresh_versions_[0].value / every;
  return fresh_versions_[0].value / every > *evaluated_;
}

// With evaluate.average the worker pulls the averages into its buffer of parameters. After the evaluation it pulls the
// parameters again.
void WorkerCore::begin_evaluation(Actions& out) {
  if (sync() && !left_ && !averages()) return run_evaluation(out);
  if (pushing_ && !left_) return enter(Phase::kWait);
  evaluation_ = Evaluation::kPull;
  begin_pull(PullOf::kAll, out);
  enter(Phase::kPull);
}

void WorkerCore::run_evaluation(Actions& out) {
  evaluation_ = Evaluation::kRun;
  final_now_ = left_;
  if (left_) final_wanted_ = false;
  const std::uint64_t every = facts_.config.evaluate.every_steps;
  if (every > 0) evaluated_ = fresh_versions_[0].value / every;
  evaluation_began_ = now_;
  enter(Phase::kEvaluate);
  out.push_back(RunEvaluation{fresh_});
}

}  // namespace disttrain::workerd
