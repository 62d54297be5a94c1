#include "workerd/core/worker_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check.h"

namespace disttrain::workerd {

namespace {

PlanOptions plan_options(const JobFacts& facts) {
  return PlanOptions{
      .own_order = facts.config.data.sharding == Sharding::kNone,
      .sync = facts.config.train.mode == Mode::kSync,
      .batch_size = facts.config.train.batch_size,
      .records = facts.train_records,
      .epochs = facts.config.train.epochs,
  };
}

Rank rank_in(const Roster& roster, Member member) {
  const auto found = std::find(roster.members.begin(), roster.members.end(), member);
  return found == roster.members.end() ? Rank(0) : Rank(static_cast<std::uint32_t>(found - roster.members.begin()));
}

bool shows_progress(const Event& event) {
  return !std::holds_alternative<Tick>(event) && !std::holds_alternative<ChannelOpened>(event) &&
         !std::holds_alternative<ChannelLost>(event) && !std::holds_alternative<ChiefReturned>(event);
}

}  // namespace

WorkerCore::WorkerCore(JobFacts facts, Instant now)
    : facts_(std::move(facts)),
      pipeline_(facts_.config.train.pipeline > 0),
      rank_(rank_in(facts_.roster, facts_.self)),
      now_(now),
      moved_(now),
      started_at_(now),
      plan_(plan_options(facts_)),
      evaluates_(facts_.evaluates) {
  progress_.since = now;
  progress_.loss = std::numeric_limits<double>::quiet_NaN();
  channels_.reserve(facts_.layout.shards);
  for (std::uint32_t shard = 0; shard < facts_.layout.shards; ++shard)
    channels_.emplace_back(ShardId(shard), buckets_of(facts_.layout, ShardId(shard)), facts_.credits);
  fresh_versions_.resize(facts_.layout.shards);
}

void WorkerCore::step(Instant now, const Event& event, Actions& out) {
  now_ = now;
  if (broken_) return;
  if (shows_progress(event)) moved_ = now;
  std::visit([this, &out](const auto& e) { on(e, out); }, event);
  if (!broken_) advance(out);
}

// ---- events ----

void WorkerCore::on(const ChannelOpened& event, Actions& out) {
  if (Status ok = channels_.at(event.shard.value).connect(event.last_sequence, out); !ok)
    return set_broken(ok.error(), out);
  const bool all = std::all_of(channels_.begin(), channels_.end(), [](const Channel& c) { return c.connected(); });
  if (!all || opened_) return;
  opened_ = true;
  out.push_back(ReportOpened{});
}

void WorkerCore::on(const ChannelLost& event, Actions& out) {
  channels_.at(event.shard.value).disconnect();
  out.push_back(Accuse{event.shard, event.reason});
}

void WorkerCore::on(const Start&, Actions&) {
  if (started_ || !opened_) return;
  started_ = true;
  started_at_ = now_;
}

void WorkerCore::on(const LeaseGranted& event, Actions&) {
  lease_requested_ = false;
  lease_refused_ = !event.grant.lease && !event.grant.last;
  plan_.grant(event.grant);
}

void WorkerCore::on(const ChiefReturned&, Actions&) {
  lease_requested_ = false;
}

void WorkerCore::on(const BatchReady& event, Actions&) {
  for (Planned& planned : planned_)
    if (planned.order.ticket == event.ticket) planned.ready = true;
}

void WorkerCore::on(const RangesReady& event, Actions& out) {
  if (computing_ && early()) add_ready_frames(event.end, out);
}

void WorkerCore::on(const Computed& event, Actions&) {
  if (!computing_) return;
  computing_ = false;
  computed_whole_ = true;
  computed_.loss = event.loss;
  if (computed_.order.examples > 0) progress_.loss = static_cast<double>(event.loss);
}

void WorkerCore::on(const ParametersArrived& event, Actions& out) {
  const Parameters& parameters = event.parameters;
  if (Status ok = channels_.at(event.shard.value).take(parameters, out); !ok) return set_broken(ok.error(), out);
  if (parameters.finished || parameters.outcome == PushOutcome::kFinished) finished_ = true;
  if (event.shard == ShardId(0)) pacer_roster_ = parameters.roster;
}

void WorkerCore::on(const AcknowledgeArrived& event, Actions& out) {
  if (Status ok = channels_.at(event.shard.value).take(event.acknowledge, out); !ok) return set_broken(ok.error(), out);
  if (event.acknowledge.finished || event.acknowledge.outcome == PushOutcome::kFinished) finished_ = true;
}

void WorkerCore::on(const StopRequested&, Actions&) {
  stopping_ = true;
}

void WorkerCore::on(const BecomesEvaluator&, Actions&) {
  if (evaluates_) return;
  evaluates_ = true;
  const std::uint64_t every = facts_.config.evaluate.every_steps;
  if (every > 0) evaluated_ = fresh_versions_[0].value / every;
}

void WorkerCore::on(const EvaluateRequested&, Actions&) {
  final_wanted_ = true;
}

void WorkerCore::on(const EvaluationDone& event, Actions& out) {
  if (evaluation_ != Evaluation::kRun) return;
  evaluation_ = Evaluation::kNone;
  Evaluated evaluated;
  evaluated.step = fresh_versions_[0];
  evaluated.final = final_now_;
  evaluated.examples = event.examples;
  evaluated.parameters_hash = event.parameters_hash;
  if (event.examples > 0) {
    const double examples = static_cast<double>(event.examples);
    evaluated.loss = event.loss_sum / examples;
    if (facts_.layout.model.classes > 0) evaluated.accuracy = static_cast<double>(event.correct) / examples;
  }
  evaluated.took = now_ - evaluation_began_;
  evaluated.stalled_training = sync() && !final_now_;
  final_now_ = false;
  out.push_back(ReportEvaluated{evaluated});
}

void WorkerCore::on(const Broken& event, Actions& out) {
  set_broken(event.error, out);
}

void WorkerCore::on(const Tick&, Actions& out) {
  lease_refused_ = false;
  const bool waits = pulling_ || (started_ && !left_ && !computing_ && evaluation_ != Evaluation::kRun);
  if (!waits || now_ - moved_ <= facts_.config.job.stall_timeout) return;
  const double seconds = to_seconds(facts_.config.job.stall_timeout);
  set_broken(Error{ErrorCode::kFailed, "waited " + std::to_string(static_cast<std::uint64_t>(seconds)) +
                                           " s (job.stall_timeout) in phase " + to_string(progress_.phase) + " for " +
                                           waited_for()},
             out);
}

// ---- the step ----

void WorkerCore::advance(Actions& out) {
  if (!started_) return;
  settle_answers(out);
  if (computing_ || evaluation_ == Evaluation::kRun) return;
  if (pulling_) return enter(Phase::kPull);
  if (evaluation_ == Evaluation::kPull) return run_evaluation(out);
  if (left_) return final_wanted_ ? begin_evaluation(out) : enter(Phase::kIdle);
  if (!have_parameters_ && !stopping_) begin_pull(false, out);
  plan_batches(out);
  if (pulling_) return enter(Phase::kPull);

  if (computed_whole_ && !pushing_) {
    if (finished_ || is_void(computed_)) {
      computed_whole_ = false;
    } else {
      begin_push(out);
    }
  }
  drop_stale_batches(out);
  const bool leaving = stopping_ || finished_ || (data_used_up() && !computed_whole_);
  if (pushing_) {
    // sync: others that stop too will never make the step whole that this push waits for.
    const bool abandon = stopping_ && sync() && pushes_sent() && !computed_whole_;
    if (!abandon && (leaving || computed_whole_ || !pipeline_))
      return enter(pushes_sent() ? Phase::kWait : Phase::kPush);
  }
  if (leaving) return leave(out);
  if (evaluation_due()) return begin_evaluation(out);
  if (ssp() && leases() && planned_.empty() && !pushing_ && !told_final_) return say_farewell(out);
  if (planned_.empty() || !planned_.front().ready) return enter(Phase::kInput);
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
  }
  if (pulling_ && pulls_complete()) {
    pulling_ = false;
    take_parameters(out);
  }
}

void WorkerCore::take_parameters(Actions& out) {
  if (finished_ && pipeline_ && !left_) return;  // what the other buffer holds may not be whole
  const auto version = [](const Channel& channel) { return channel.version(); };
  if (sync() && !finished_) {
    // An answer to a late push may have met one shard before and another after a commit.
    const bool equal = std::all_of(channels_.begin(), channels_.end(), [this, version](const Channel& channel) {
      return version(channel) == version(channels_[0]);
    });
    if (!equal) return begin_pull(true, out);
  }
  if (pipeline_) fresh_ = 1 - fresh_;
  std::transform(channels_.begin(), channels_.end(), fresh_versions_.begin(), version);
  have_parameters_ = true;
  follow_roster(out);
}

void WorkerCore::follow_roster(Actions& out) {
  if (roster_known_ && roster_ == pacer_roster_) return;
  roster_known_ = true;
  roster_ = pacer_roster_;
  if (!sync() || !leases()) return;
  plan_.change_roster(roster_, Step(next_clock()));
  for (const Planned& planned : planned_) out.push_back(DropBatch{planned.order.ticket});
  planned_.clear();
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
  if (!leases() || lease_requested_ || lease_refused_ || !plan_.runs_dry(facts_.config.data.prefetch)) return;
  lease_requested_ = true;
  const double seconds = to_seconds(now_ - started_at_);
  out.push_back(RequestLease{seconds > 0 ? static_cast<double>(progress_.examples) / seconds : 0.0});
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
  if (early())
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
  enter(Phase::kCompute);
  out.push_back(compute);
}

void WorkerCore::begin_push(Actions& out) {
  if (!early()) {
    if (sync()) computed_.clock = next_clock();
    for (Channel& channel : channels_) channel.begin_push();
  }
  computed_.final = ssp() && data_used_up();
  told_final_ = computed_.final;  // after a farewell any other push says that it is back
  pushing_ = true;
  farewell_ = false;
  computed_whole_ = false;
  pushed_ = computed_;
  add_last_frames(out);
}

void WorkerCore::add_ready_frames(std::uint64_t ready_end, Actions& out) {
  for (Channel& channel : channels_) {
    while (channel.frames() + 1 < channel.buckets().size()) {
      const Bucket& bucket = facts_.layout.buckets[channel.buckets()[channel.frames()].value];
      if (bucket.flat_begin + bucket.elements > ready_end) break;
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
  push.bucket = channel.buckets()[channel.frames()];
  push.clock = Step(gradient.clock);
  push.pull_version = gradient.pull_versions[channel.shard().value];
  const bool streams = facts_.config.train.mode == Mode::kAsync && channel.buckets().size() > 1;
  push.want = streams ? Want::kBucket : (last && !gradient.final ? Want::kAll : Want::kNothing);
  if (!last) return push;
  push.last = true;
  push.final = gradient.final;
  push.examples = static_cast<std::uint32_t>(gradient.order.examples);
  push.loss = gradient.loss;
  if (channel.shard() == ShardId(0)) {  // the ledger is the pacer's
    push.lease = gradient.order.lease;
    push.epoch = gradient.order.epoch;
    push.visited = gradient.order.positions;
  }
  return push;
}

void WorkerCore::begin_pull(bool only_lagging, Actions& out) {
  pulling_ = true;
  const Pull pull{++last_pull_id_};
  Step newest;
  for (const Channel& channel : channels_) newest = std::max(newest, channel.version());
  for (Channel& channel : channels_)
    if (!only_lagging || channel.version() < newest) channel.begin_pull(pull, out);
}

// ssp: who pushes no more, or not before it gets a lease, says so with an empty push. Else the others would wait for a
// clock that stands still; and the leases that they hold may be all that there is, so that nobody would ever move.
void WorkerCore::say_farewell(Actions& out) {
  told_final_ = true;
  pushing_ = true;
  farewell_ = true;
  ++clock_;
  for (Channel& channel : channels_) {
    channel.begin_push();
    Push push;
    push.bucket = channel.buckets().back();
    push.clock = Step(clock_);
    push.pull_version = fresh_versions_[channel.shard().value];
    push.last = true;
    push.final = true;
    channel.add_frame(push, 0, false, out);
  }
  enter(Phase::kWait);
}

void WorkerCore::leave(Actions& out) {
  if (ssp() && !told_final_ && !finished_ && have_parameters_) return say_farewell(out);
  left_ = true;
  for (const Planned& planned : planned_) out.push_back(DropBatch{planned.order.ticket});
  planned_.clear();
  out.push_back(ReportFinished{progress_.steps});
  if (final_wanted_) return begin_evaluation(out);
  enter(Phase::kIdle);
}

// ---- evaluation ----

bool WorkerCore::evaluation_due() {
  const std::uint64_t every = facts_.config.evaluate.every_steps;
  if (!evaluates_ || every == 0) return false;
  return fresh_versions_[0].value / every > evaluated_;
}

void WorkerCore::begin_evaluation(Actions& out) {
  if (sync() && !left_) return run_evaluation(out);
  if (pushing_ && !left_) return enter(Phase::kWait);
  begin_pull(false, out);
  evaluation_ = Evaluation::kPull;
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

// ---- questions ----

std::optional<BatchTicket> WorkerCore::batch_wanted() const {
  if (broken_ || progress_.phase != Phase::kInput || planned_.empty() || planned_.front().ready) return std::nullopt;
  return planned_.front().order.ticket;
}

bool WorkerCore::early() const {
  if (pipeline_) return false;
  return sync() || facts_.config.train.clip.kind != ClipKind::kGlobalNorm;
}

bool WorkerCore::data_used_up() const {
  return planned_.empty() && plan_.exhausted();
}

std::uint64_t WorkerCore::next_clock() const {
  if (!sync()) return clock_ + 1;
  return (pushing_ ? pushed_.clock : fresh_versions_[0].value) + 1;
}

// sync with pipeline: step n + 1 is computed from the parameters of step n - 1, whether those of step n are here
// already or not. Else the result would hang on who is quick.
bool WorkerCore::holds_answer_back() const {
  return sync() && pipeline_ && !computing_ && !computed_whole_ && !finished_ && !stopping_ && !data_used_up() &&
         pacer_roster_ == roster_;
}

bool WorkerCore::pushes_complete() const {
  return std::all_of(channels_.begin(), channels_.end(), [](const Channel& c) { return c.push_complete(); });
}

bool WorkerCore::pushes_sent() const {
  return std::all_of(channels_.begin(), channels_.end(), [](const Channel& c) { return c.push_sent(); });
}

bool WorkerCore::pulls_complete() const {
  return std::all_of(channels_.begin(), channels_.end(), [](const Channel& c) { return c.pull_complete(); });
}

// sync with leases: a gradient is of one step of one roster, or of no use.
bool WorkerCore::is_void(const Gradient& gradient) const {
  if (!sync() || !leases() || !pipeline_) return false;
  return gradient.roster != roster_ || gradient.clock != next_clock();
}

std::string WorkerCore::waited_for() const {
  if (progress_.phase == Phase::kInput)
    return planned_.empty() ? "a lease of training records from the chief" : "the next batch of training records";
  std::string names;
  for (const Channel& channel : channels_) {
    if (channel.push_complete() && channel.pull_complete()) continue;
    if (!names.empty()) names += ", ";
    const std::size_t shard = channel.shard().value;
    names += shard < facts_.shard_names.size() ? facts_.shard_names[shard] : "shard " + std::to_string(shard);
    if (!channel.connected()) names += " (not connected)";
  }
  return names.empty() ? "nothing that is known" : names;
}

void WorkerCore::enter(Phase phase) {
  if (progress_.phase == phase) return;
  progress_.times[static_cast<std::size_t>(progress_.phase)] += now_ - progress_.since;
  progress_.phase = phase;
  progress_.since = now_;
}

void WorkerCore::set_broken(Error error, Actions& out) {
  broken_ = true;
  enter(Phase::kIdle);
  out.push_back(Fail{std::move(error)});
}

}  // namespace disttrain::workerd
