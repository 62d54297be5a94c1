#include "workerd/core/worker_core.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/format_duration.h"
#include "common/timeouts.h"

namespace disttrain::workerd {

namespace {

PlanOptions plan_options(const JobFacts& facts) {
  return PlanOptions{
      .own_order = facts.config.data.sharding == Sharding::kNone,
      .sync = facts.config.train.mode == Mode::kSync,
      .step_records = facts.config.train.step_records(),
      .records = facts.train_records,
      .epochs = facts.config.train.epochs,
      .done = facts.batches,
  };
}

Rank rank_in(const Roster& roster, Member member) {
  const auto found = std::find(roster.members.begin(), roster.members.end(), member);
  return found == roster.members.end() ? Rank(0) : Rank(static_cast<std::uint32_t>(found - roster.members.begin()));
}

// The next step reads the first layer first. Its variables are the last ones of the flat array, and the engine reads a
// variable from its first word on. So the buckets are ranked by the variable in which they end.
std::vector<RankedBucket> ranked_buckets(const Layout& layout, ShardId shard) {
  std::vector<std::uint64_t> begins = layout.variable_begins;
  std::sort(begins.begin(), begins.end());
  const auto variable_of = [&](BucketId bucket) {
    const Bucket& words = layout.buckets[bucket.value];
    return std::lower_bound(begins.begin(), begins.end(), words.flat_begin + words.words) - begins.begin();
  };
  std::vector<BucketId> order;
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b) order.push_back(BucketId(b));
  std::stable_sort(order.begin(), order.end(), [&](BucketId a, BucketId b) { return variable_of(a) > variable_of(b); });
  std::vector<std::uint32_t> ranks(order.size());
  for (std::uint32_t rank = 0; rank < order.size(); ++rank) ranks[order[rank].value] = rank;
  std::vector<RankedBucket> ranked;
  for (const BucketId bucket : buckets_of(layout, shard)) ranked.push_back({bucket, ranks[bucket.value]});
  return ranked;
}

bool shows_progress(const Event& event) {
  return !std::holds_alternative<Tick>(event) && !std::holds_alternative<ChannelOpened>(event) &&
         !std::holds_alternative<ChannelLost>(event) && !std::holds_alternative<PsUnreachable>(event) &&
         !std::holds_alternative<PsReached>(event) && !std::holds_alternative<ChiefAway>(event) &&
         !std::holds_alternative<ChiefReturned>(event);
}

}  // namespace

WorkerCore::WorkerCore(JobFacts facts, Instant now)
    : facts_(std::move(facts)),
      pipeline_(facts_.config.train.pipeline > 0),
      begins_early_(facts_.begins_early && !pipeline_ && facts_.config.train.mode == Mode::kAsync && early()),
      rank_(rank_in(facts_.roster, facts_.self)),
      now_(now),
      moved_(now),
      ticked_(now),
      started_at_(now),
      plan_(plan_options(facts_)),
      evaluates_(facts_.evaluates) {
  progress_.since = now;
  progress_.loss = std::numeric_limits<double>::quiet_NaN();
  channels_.reserve(facts_.layout.shards);
  for (std::uint32_t shard = 0; shard < facts_.layout.shards; ++shard)
    channels_.emplace_back(ShardId(shard), ranked_buckets(facts_.layout, ShardId(shard)), facts_.credits);
  fresh_versions_.resize(facts_.layout.shards);
  clock_ = facts_.clock.value;
}

void WorkerCore::step(Instant now, const Event& event, Actions& out) {
  now_ = now;
  if (broken_) {
    if (std::holds_alternative<ChiefReturned>(event)) out.push_back(Fail{*broken_});
    return;
  }
  if (shows_progress(event)) moved_ = now;
  std::visit([this, &out](const auto& e) { on(e, out); }, event);
  if (!broken_) place_marks(out);
  if (!broken_) advance(out);
  if (!broken_) place_marks(out);
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
  Channel& channel = channels_.at(event.shard.value);
  channel.disconnect();
  if (awaits_parameters() && !channel.push_complete()) out.push_back(Recompute{event.shard});
  out.push_back(Accuse{event.shard, event.reason, event.lasts});
}

void WorkerCore::on(const PsUnreachable& event, Actions& out) {
  out.push_back(Accuse{event.shard, event.reason, event.lasts});
}

void WorkerCore::on(const PsReached& event, Actions& out) {
  out.push_back(Accuse{event.shard, "", Duration::zero(), true});
}

void WorkerCore::on(const Start&, Actions&) {
  if (started_ || !opened_) return;
  started_ = true;
  started_at_ = now_;
}

void WorkerCore::on(const LeaseGranted& event, Actions&) {
  lease_requested_ = false;
  // If the grant contained nothing new, the next request waits for a tick. Otherwise this worker and the chief would
  // exchange the same request and answer in an endless loop.
  lease_refused_ = !plan_.grant(event.grant);
}

void WorkerCore::on(const ChiefAway&, Actions&) {
  is_chief_away_ = true;
}

// The last messages to the chief may be lost, so the core sends its request and reports again. The time towards
// job.stall_timeout starts again at 0, because time without a chief doesn't count.
void WorkerCore::on(const ChiefReturned&, Actions& out) {
  if (std::exchange(is_chief_away_, false)) moved_ = now_;
  lease_requested_ = false;
  if (opened_ && !started_) out.push_back(ReportOpened{});
  if (left_) out.push_back(ReportFinished{progress_.steps});
  if (final_) out.push_back(ReportEvaluated{*final_});
}

void WorkerCore::on(const BatchReady& event, Actions&) {
  for (std::size_t i = 0; i < planned_.size(); ++i)
    if (planned_[i].order.ticket == event.ticket) planned_[i].ready = true;
}

void WorkerCore::on(const RangesReady& event, Actions& out) {
  const bool is_needed = !finished_ || has_frames();
  if (computing_ && early() && !pushing_ && is_needed) add_ready_frames(event.end, out);
}

void WorkerCore::on(const Computed& event, Actions&) {
  if (!computing_) return;
  computing_ = false;
  computed_whole_ = true;
  computed_.loss = event.loss;
  // The next computation may begin at once, so the phase may stay the same for many steps.
  const Duration whole = std::exchange(overlapped_, Duration::zero()) + (now_ - progress_.since);
  const Duration waited = std::min(event.waited, whole);
  progress_.times[static_cast<std::size_t>(Phase::kCompute)] += whole - waited;
  progress_.times[static_cast<std::size_t>(Phase::kWait)] += waited;
  progress_.since = now_;
  if (computed_.order.examples > 0) progress_.loss = static_cast<double>(event.loss);
}

void WorkerCore::on(const ParametersArrived& event, Actions& out) {
  const Parameters& parameters = event.parameters;
  if (Status ok = channels_.at(event.shard.value).take(parameters, out); !ok) return set_broken(ok.error(), out);
  if (parameters.finished || parameters.outcome == PushOutcome::kFinished) finished_ = true;
  if (event.shard != ShardId(0)) return;
  pacer_roster_ = parameters.roster;
  clock_ = std::max(clock_, parameters.clock.value);
}

void WorkerCore::on(const AcknowledgeArrived& event, Actions& out) {
  if (Status ok = channels_.at(event.shard.value).take(event.acknowledge, out); !ok) return set_broken(ok.error(), out);
  if (event.acknowledge.finished || event.acknowledge.outcome == PushOutcome::kFinished) finished_ = true;
  if (!event.acknowledge.wants_values) return;
  if (have_parameters_ || computing_)
    return set_broken(Error{ErrorCode::kSoftware, "shard " + std::to_string(event.shard.value) +
                                                      " asks for first values in the middle of the training"},
                      out);
  values_wanted_.push_back(event.shard);
  if (values_ == Values::kLoaded) send_values(out);
  if (values_ != Values::kNone) return;
  values_ = Values::kLoading;
  out.push_back(LoadValues{kValuesBuffer});
}

void WorkerCore::on(const ValuesLoaded&, Actions& out) {
  if (values_ != Values::kLoading) return;
  values_ = Values::kLoaded;
  send_values(out);
}

// The chief asks again after a reconnect. The core places only one mark for an attempt. Until the shard answers this
// mark, the channel keeps the next push back. A second mark would replace the first one and would come after that
// push. So the channel would send the push too early.
void WorkerCore::on(const MarkRequested& event, Actions&) {
  if (event.attempt <= newest_mark_) return;
  mark_wanted_ = newest_mark_ = event.attempt;
}

void WorkerCore::on(const MarkTakenArrived& event, Actions& out) {
  channels_.at(event.shard.value).release(event.taken.attempt, out);
}

void WorkerCore::on(const Paused& event, Actions&) {
  paused_ = event.paused;
}

void WorkerCore::on(const StopRequested&, Actions&) {
  stopping_ = true;
}

void WorkerCore::on(const BecomesEvaluator&, Actions&) {
  if (evaluates_) return;
  evaluates_ = true;
  const std::uint64_t every = facts_.config.evaluate.every_steps;
  if (every > 0 && have_parameters_) evaluated_ = fresh_versions_[0].value / every;
}

void WorkerCore::on(const EvaluateRequested&, Actions& out) {
  if (final_) return out.push_back(ReportEvaluated{*final_});
  final_wanted_ = !final_now_;
}

void WorkerCore::on(const EvaluationDone& event, Actions& out) {
  if (evaluation_ != Evaluation::kRun) return;
  evaluation_ = Evaluation::kNone;
  Evaluated evaluated;
  evaluated.step = fresh_versions_[0];
  evaluated.final = final_now_;
  evaluated.examples = event.examples;
  evaluated.metrics = event.metrics;
  evaluated.parameters_hash = event.parameters_hash;
  evaluated.notice = event.notice;
  if (event.examples > 0) evaluated.loss = event.loss_sum / static_cast<double>(event.examples);
  evaluated.took = now_ - evaluation_began_;
  evaluated.stalled_training = sync() && !final_now_;
  if (final_now_) final_ = evaluated;
  final_now_ = false;
  out.push_back(ReportEvaluated{evaluated});
}

void WorkerCore::on(const Broken& event, Actions& out) {
  set_broken(event.error, out);
}

void WorkerCore::on(const Tick&, Actions& out) {
  lease_refused_ = false;
  looked_ahead_ = false;
  // If the time between two ticks is longer than this, the worker's process was stopped or its clock jumped. That time
  // doesn't count towards job.stall_timeout, because no peer caused it.
  constexpr Duration kLongestTick = std::chrono::seconds(3);
  if (now_ - ticked_ > kLongestTick) moved_ = std::min(now_, moved_ + (now_ - ticked_));
  ticked_ = now_;
  if (paused_ || is_chief_away_) moved_ = now_;
  const bool waits =
      pulling_ || awaits_parameters() || (started_ && !left_ && !computing_ && evaluation_ != Evaluation::kRun);
  const Duration limit = facts_.config.job.stall_timeout * patience();
  if (!waits || now_ - moved_ <= limit) return;
  // kFailed ends the job. After kUnavailable the chief first finds out whether another task is the cause.
  const ErrorCode code = waits_for_others() ? ErrorCode::kUnavailable : ErrorCode::kFailed;
  const std::string times = patience() == 1 ? "" : std::to_string(patience()) + " times ";
  set_broken(Error{code, "waited " + format_duration(limit) + " (" + times + "job.stall_timeout) in phase " +
                             to_string(progress_.phase) + " for " + waited_for()},
             out);
}

// ---- questions ----

std::optional<BatchTicket> WorkerCore::batch_wanted() const {
  if (broken_ || progress_.phase != Phase::kInput || planned_.empty() || planned_.front().ready) return std::nullopt;
  return planned_.front().order.ticket;
}

bool WorkerCore::awaits_answers() const {
  return pushing_ || pulling_ ||
         std::any_of(channels_.begin(), channels_.end(), [](const Channel& c) { return !c.push_complete(); });
}

bool WorkerCore::early() const {
  if (pipeline_ && facts_.config.train.mode != Mode::kAsync) return false;
  return sync() || facts_.config.train.clip.kind != ClipKind::kGlobalNorm;
}

bool WorkerCore::may_begin_early() const {
  return begins_early_ && !paused_ &&
         std::all_of(channels_.begin(), channels_.end(), [](const Channel& c) { return c.answers_once(); });
}

bool WorkerCore::data_used_up() const {
  return planned_.empty() && plan_.exhausted();
}

std::uint64_t WorkerCore::next_clock() const {
  if (!sync()) return clock_ + 1;
  return (pushing_ ? pushed_.clock : fresh_versions_[0].value) + 1;
}

// True in sync with pipeline = 1 if the worker must not use new parameters yet. Step n + 1 is always computed from the
// parameters of step n - 1, even if those of step n have already arrived. Otherwise the result would depend on timing.
bool WorkerCore::holds_answer_back() const {
  return sync() && pipeline_ && !computing_ && !computed_whole_ && !finished_ && !stopping_ && !data_used_up() &&
         pacer_roster_ == roster_ && !must_look_ahead();
}

bool WorkerCore::must_look_ahead() const {
  return plan_.has_missed_a_block() || (planned_.empty() && plan_.waits_for_a_roster());
}

bool WorkerCore::has_frames() const {
  return std::any_of(channels_.begin(), channels_.end(), [](const Channel& c) { return c.frames() > 0; });
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

// True if the gradient can't be pushed any more. In sync with leases a gradient is valid only for one step of one
// roster. With pipeline = 1 the job may have moved on while the gradient was computed.
bool WorkerCore::is_void(const Gradient& gradient) const {
  if (!sync() || !leases() || !pipeline_) return false;
  return gradient.roster != roster_ || gradient.clock != next_clock();
}

bool WorkerCore::waits_for_others() const {
  return progress_.phase != Phase::kInput || planned_.empty();
}

// How long this worker may wait before it gives up, as a multiple of job.stall_timeout. If several workers wait for the
// same thing, the chief decides first: it acts after one stall timeout, or after ten if they wait for an evaluation. So
// this worker gives up only if its wait lasts one stall timeout longer than that.
int WorkerCore::patience() const {
  constexpr int kAfterTheChief = 2;
  constexpr int kAfterAnEvaluation = kEvaluationPatience + 1;
  if (!waits_for_others()) return 1;
  return facts_.config.train.mode == Mode::kAsync ? kAfterTheChief : kAfterAnEvaluation;
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
  return names.empty() ? "an unknown reason" : names;
}

void WorkerCore::enter(Phase phase) {
  if (progress_.phase == phase) return;
  progress_.times[static_cast<std::size_t>(progress_.phase)] += now_ - progress_.since;
  progress_.phase = phase;
  progress_.since = now_;
}

// A ps that doesn't answer must not look like a worker that computes too long. So the phase is kWait as long as answers
// are under way. How much of this time was computed is known only when the computation has ended.
void WorkerCore::enter_compute() {
  enter(pushing_ && begins_early_ ? Phase::kWait : Phase::kCompute);
  progress_.times[static_cast<std::size_t>(progress_.phase)] += now_ - progress_.since;
  progress_.since = now_;
}

void WorkerCore::note_all_parameters() {
  overlapped_ = now_ - progress_.since;
  progress_.phase = Phase::kCompute;
  progress_.since = now_;
}

void WorkerCore::set_broken(Error error, Actions& out) {
  broken_ = std::move(error);
  enter(Phase::kIdle);
  out.push_back(Fail{*broken_});
}

}  // namespace disttrain::workerd
