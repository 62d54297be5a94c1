#include "workerd/core/worker_core.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/format_duration.h"
#include "common/timeouts.h"

namespace disttrain::workerd {

namespace {

Rank rank_in(const Roster& roster, Member member) {
  const auto found = std::find(roster.members.begin(), roster.members.end(), member);
  return found == roster.members.end() ? Rank(0) : Rank(static_cast<std::uint32_t>(found - roster.members.begin()));
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
      phases_(now),
      channels_(facts_),
      queue_(facts_),
      parameters_(facts_.layout.shards, pipeline_),
      evaluations_(facts_.evaluates, facts_.config.evaluate.every_steps),
      clock_(facts_.clock.value) {}

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
  check();
}

// ---- events ----

void WorkerCore::on(const ChannelOpened& event, Actions& out) {
  if (Status ok = channels_.at(event.shard).connect(event.last_sequence, out); !ok) return set_broken(ok.error(), out);
  if (life_ != Life::kOpening || !channels_.are_connected()) return;
  life_ = Life::kOpened;
  out.push_back(ReportOpened{});
}

void WorkerCore::on(const ChannelLost& event, Actions& out) {
  Channel& channel = channels_.at(event.shard);
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
  if (life_ != Life::kOpened) return;
  life_ = Life::kTraining;
  started_at_ = now_;
}

void WorkerCore::on(const LeaseGranted& event, Actions&) {
  queue_.grant(event.grant);
}

void WorkerCore::on(const ChiefAway&, Actions&) {
  is_chief_away_ = true;
}

// The last messages to the chief may be lost, so the core sends its request and reports again. The time towards
// job.stall_timeout starts again at 0, because time without a chief doesn't count.
void WorkerCore::on(const ChiefReturned&, Actions& out) {
  if (std::exchange(is_chief_away_, false)) moved_ = now_;
  queue_.ask_again();
  if (life_ == Life::kOpened) out.push_back(ReportOpened{});
  if (has_left()) out.push_back(ReportFinished{progress().steps});
  if (evaluations_.final_result()) out.push_back(ReportEvaluated{*evaluations_.final_result()});
}

void WorkerCore::on(const BatchReady& event, Actions&) {
  queue_.note_ready(event.ticket);
}

void WorkerCore::on(const RangesReady& event, Actions& out) {
  const bool is_needed = !is_finished_ || channels_.has_frames();
  if (is_computing() && early() && !is_pushing() && is_needed) add_ready_frames(event.end, out);
}

void WorkerCore::on(const Computed& event, Actions&) {
  if (!is_computing()) return;
  computation_ = Computation::kWhole;
  computed_.loss = event.loss;
  phases_.end_compute(event.waited, now_);
  if (computed_.order.examples > 0) phases_.set_loss(static_cast<double>(event.loss));
}

void WorkerCore::on(const ParametersArrived& event, Actions& out) {
  const Parameters& parameters = event.parameters;
  if (Status ok = channels_.at(event.shard).take(parameters, out); !ok) return set_broken(ok.error(), out);
  if (parameters.finished || parameters.outcome == PushOutcome::kFinished) is_finished_ = true;
  if (event.shard != ShardId(0)) return;
  pacer_roster_ = parameters.roster;
  clock_ = std::max(clock_, parameters.clock.value);
}

void WorkerCore::on(const AcknowledgeArrived& event, Actions& out) {
  if (Status ok = channels_.at(event.shard).take(event.acknowledge, out); !ok) return set_broken(ok.error(), out);
  if (event.acknowledge.finished || event.acknowledge.outcome == PushOutcome::kFinished) is_finished_ = true;
  if (!event.acknowledge.wants_values) return;
  if (parameters_.is_any() || is_computing())
    return set_broken(Error{ErrorCode::kSoftware, "shard " + std::to_string(event.shard.value) +
                                                      " asks for first values in the middle of the training"},
                      out);
  if (values_.want(event.shard)) out.push_back(LoadValues{kValuesBuffer});
  send_values(out);
}

void WorkerCore::on(const ValuesLoaded&, Actions& out) {
  values_.note_loaded();
  // With parameters of all shards, none of them lacks values: another worker has given them.
  if (!parameters_.is_any()) send_values(out);
}

// The chief asks again after a reconnect. The core places only one mark for an attempt. Until the shard answers this
// mark, the channel keeps the next push back. A second mark would replace the first one and would come after that
// push. So the channel would send the push too early.
void WorkerCore::on(const MarkRequested& event, Actions&) {
  if (event.attempt <= newest_mark_) return;
  mark_wanted_ = newest_mark_ = event.attempt;
}

void WorkerCore::on(const MarkTakenArrived& event, Actions& out) {
  channels_.at(event.shard).release(event.taken.attempt, out);
}

void WorkerCore::on(const Paused& event, Actions&) {
  is_paused_ = event.paused;
}

void WorkerCore::on(const StopRequested&, Actions&) {
  is_stopping_ = true;
}

void WorkerCore::on(const BecomesEvaluator&, Actions&) {
  evaluations_.become_evaluator(parameters_.is_any() ? std::optional(parameters_.version()) : std::nullopt);
}

void WorkerCore::on(const EvaluateRequested&, Actions& out) {
  if (evaluations_.final_result()) return out.push_back(ReportEvaluated{*evaluations_.final_result()});
  evaluations_.want_final();
}

void WorkerCore::on(const EvaluationDone& event, Actions& out) {
  if (!evaluations_.runs()) return;
  out.push_back(ReportEvaluated{evaluations_.finish(event, parameters_.version(), sync(), now_)});
}

void WorkerCore::on(const Broken& event, Actions& out) {
  set_broken(event.error, out);
}

void WorkerCore::on(const Tick&, Actions& out) {
  queue_.tick();
  has_looked_ahead_ = false;
  // If the time between two ticks is longer than this, the worker's process was stopped or its clock jumped. That time
  // doesn't count towards job.stall_timeout, because no peer caused it.
  constexpr Duration kLongestTick = std::chrono::seconds(3);
  if (now_ - ticked_ > kLongestTick) moved_ = std::min(now_, moved_ + (now_ - ticked_));
  ticked_ = now_;
  if (is_paused_ || is_chief_away_) moved_ = now_;
  const bool waits =
      is_pulling_ || awaits_parameters() || (life_ == Life::kTraining && !is_computing() && !evaluations_.runs());
  const Duration limit = facts_.config.job.stall_timeout * patience();
  if (!waits || now_ - moved_ <= limit) return;
  // kFailed ends the job. After kUnavailable the chief first finds out whether another task is the cause.
  const ErrorCode code = waits_for_others() ? ErrorCode::kUnavailable : ErrorCode::kFailed;
  const std::string times = patience() == 1 ? "" : std::to_string(patience()) + " times ";
  set_broken(Error{code, "waited " + format_duration(limit) + " (" + times + "job.stall_timeout) in phase " +
                             to_string(progress().phase) + " for " + waited_for()},
             out);
}

// ---- questions ----

std::optional<BatchTicket> WorkerCore::batch_wanted() const {
  return broken_ || progress().phase != Phase::kInput ? std::nullopt : queue_.awaited();
}

bool WorkerCore::awaits_answers() const {
  return is_pushing() || is_pulling_ || !channels_.are_pushes_complete();
}

bool WorkerCore::early() const {
  if (pipeline_ && facts_.config.train.mode != Mode::kAsync) return false;
  return sync() || facts_.config.train.clip.kind != ClipKind::kGlobalNorm;
}

bool WorkerCore::may_begin_early() const {
  return begins_early_ && !is_paused_ && channels_.answer_once();
}

std::uint64_t WorkerCore::next_clock() const {
  if (!sync()) return clock_ + 1;
  return (is_pushing() ? pushed_.clock : parameters_.version().value) + 1;
}

// True in sync with pipeline = 1 if the worker must not use new parameters yet. Step n + 1 is always computed from the
// parameters of step n - 1, even if those of step n have already arrived. Otherwise the result would depend on timing.
bool WorkerCore::holds_answer_back() const {
  return sync() && pipeline_ && computation_ == Computation::kNone && !is_finished_ && !is_stopping_ &&
         !queue_.is_used_up() && pacer_roster_ == roster_ && !queue_.must_look_ahead();
}

// True if the gradient can't be pushed any more. In sync with leases a gradient is valid only for one step of one
// roster. With pipeline = 1 the job may have moved on while the gradient was computed.
bool WorkerCore::is_void(const Gradient& gradient) const {
  if (!sync() || !leases() || !pipeline_) return false;
  return gradient.roster != roster_ || gradient.clock != next_clock();
}

bool WorkerCore::waits_for_others() const {
  return progress().phase != Phase::kInput || queue_.is_empty();
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
  if (progress().phase == Phase::kInput)
    return queue_.is_empty() ? "a lease of training records from the chief" : "the next batch of training records";
  const std::string debtors = channels_.debtors(facts_.shard_names);
  return debtors.empty() ? "an unknown reason" : debtors;
}

void WorkerCore::set_broken(Error error, Actions& out) {
  broken_ = std::move(error);
  enter(Phase::kIdle);
  out.push_back(Fail{*broken_});
}

void WorkerCore::check() const {
  if (broken_) return;
  // A step is computed from parameters, not from averages.
  DISTTRAIN_CHECK(computation_ == Computation::kNone || parameters_.are_trainable());
  // Nothing is pulled while parameters are evaluated.
  DISTTRAIN_CHECK(!evaluations_.runs() || (computation_ == Computation::kNone && !is_pulling_));
  // A step begins while the push before is under way only if the worker may do so.
  DISTTRAIN_CHECK(!is_computing() || !is_pushing() || pipeline_ || begins_early_);
  // Only in ssp do other workers wait for this one.
  DISTTRAIN_CHECK(ssp() || (!is_at_work_ && pushing_ != Pushing::kFarewell));
  // A worker that has left computes nothing and holds no batch.
  DISTTRAIN_CHECK(!has_left() || (computation_ == Computation::kNone && queue_.is_empty()));
  // The chief's newest mark is the one that is still to be sent.
  DISTTRAIN_CHECK(!mark_wanted_ || *mark_wanted_ == newest_mark_);
}

}  // namespace disttrain::workerd
