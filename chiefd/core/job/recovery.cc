#include "chiefd/core/job/recovery.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "chiefd/core/restarts.h"

namespace disttrain::chiefd {
namespace {

// A silent ps is waited for as long as a rollback would cost, within these.
constexpr int kMostPatience = 60;  // heartbeat timeouts

// The generation may have applied steps that are in no checkpoint.
bool has_trained(Stage stage) {
  return stage == Stage::kTrain || stage == Stage::kReclaim || stage == Stage::kSettle || stage == Stage::kFinalCut ||
         stage == Stage::kEvaluate;
}

}  // namespace

Recovery::Recovery(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      held_(parts.held),
      events_(parts.events),
      condition_(parts.condition),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      pauses_(parts.pauses),
      members_(parts.members),
      gathering_(parts.gathering),
      loans_(parts.loans),
      fences_(parts.fences),
      suspicions_(parts.suspicions),
      membership_(parts.membership),
      pausing_(parts.pausing),
      regathering_(parts.regathering),
      reclaim_(parts.reclaim),
      folder_(parts.folder),
      schedule_(parts.schedule),
      checkpointing_(parts.checkpointing),
      closing_(parts.closing),
      ending_(parts.ending) {}

void Recovery::on_loss(Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  if (stage_.is(Stage::kRegather)) return regathering_.regather(turn);
  if (!members_.uses(member)) return;
  if (stage_.is(Stage::kClose)) {
    if (stage_.answered(member)) closing_.finish(turn);
    return;
  }
  const Loss loss = finding.was_told_to_end ? Loss::kLeft : Loss::kCounts;
  const bool is_silent = finding.what == Finding::What::kSilent;
  if (generation_.is_owner(member)) {
    if (is_silent && has_trained(stage_.at())) return pause(turn, finding);
    return recover(turn, {member.task, finding.why}, loss);
  }
  lose_worker(turn, finding, loss);
}

void Recovery::lose_worker(Turn& turn, const Finding& finding, Loss loss) {
  const Member& member = finding.member;
  if (stage_.is(Stage::kTrain)) return membership_.lose(turn, member, finding.why, loss);
  if (stage_.is(Stage::kReclaim)) {
    if (finding.was_told_to_end) reclaim_.note_leaves(member.task);
    if (stage_.awaits_anyone()) return membership_.lose(turn, member, finding.why, loss);
    return reclaim_.on_gone(member);  // seen when all are gathered
  }
  if (!has_trained(stage_.at())) return recover(turn, {member.task, finding.why}, loss);
  workers_.mark_lost(member);
  // The last cut doesn't wait for its marks.
  if (stage_.is(Stage::kSettle) || stage_.is(Stage::kFinalCut)) {
    std::vector<Member> others = workers_.roster().members;
    std::erase(others, member);
    membership_.change_roster(turn, std::move(others), std::nullopt);
    checkpointing_.interrupt(turn, to_string(member.task) + " is lost");
  }
  if (stage_.is(Stage::kEvaluate) && stage_.awaits(member)) ending_.evaluate(turn, loss);
}

bool Recovery::check_silence(Turn& turn) {
  for (const auto& [task, silence] : pauses_.silent_ps()) {
    const Duration lasts = turn.now - silence.since;
    if (lasts <= patience_with_ps(silence.since) || condition_.has_ended()) continue;
    if (silence.is_link)
      recover(turn, {std::nullopt, silence.why}, Loss::kLink);
    else
      recover(turn, {task, "it has been silent for " + std::to_string(static_cast<long>(to_seconds(lasts))) + " s"},
              turn.tasks.find(task)->leaving ? Loss::kLeft : Loss::kCounts);
    return true;
  }
  return false;
}

Duration Recovery::patience_with_ps(Instant silent_since) const {
  const Duration age = silent_since - schedule_.newest_at();
  return std::clamp(age, setup_.timeouts.silent_ps, setup_.timeouts.silent * kMostPatience);
}

void Recovery::pause(Turn& turn, const Finding& finding) {
  pauses_.note_silent(finding.member.task, Silence{turn.now});
  if (checkpointing_.is_owed_by(finding.member))
    checkpointing_.abandon(turn, to_string(finding.member.task) + " is silent");
  const std::string reason = to_string(Cause{finding.member.task, finding.why}) + "; waiting for it to return";
  pausing_.tell_workers(turn, true, reason);
  condition_.set(turn, JobState::kPaused, reason);
}

void Recovery::recover(Turn& turn, const Cause& cause, Loss loss) {
  if (condition_.has_ended() || stage_.is(Stage::kClose) || stage_.is(Stage::kQueued)) return;
  if (condition_.is_stopping())
    return closing_.close(turn, JobState::kStopped,
                          condition_.end_reason() + "; " + to_string(cause) + " before the workers had ended");
  const bool counts = loss == Loss::kCounts;
  const std::size_t times =
      counts ? count_loss(turn, generation_.owners().empty() ? kLostAtStart : kLossCounted, cause) : 0;
  if (times > setup_.config().job.max_restarts)
    return ending_.fail(turn, too_many_losses(ErrorCode::kFailed, cause, times), cause.task);
  // Nothing was placed yet: no generation to roll back.
  if (generation_.owners().empty()) {
    stage_.await_nobody();
    return gathering_.resume(turn);
  }
  if (!counts)
    events_.tell(turn, kRollsBack, loss == Loss::kLink ? 2 : 1,
                 std::string(loss == Loss::kLink ? "a link failed" : "it was told to end") +
                     ", which counts as no loss: " + to_string(cause),
                 cause.task, cause.reason);
  // Another loss while it recovers: what was reached before the first one is what it had come to.
  const std::optional<Rollback>& before = rollbacks_.current();
  rollbacks_.begin(Rollback{cause, before ? before->began : turn.now, before ? before->gathers_since : turn.now,
                            turn.now + back_off(rollbacks_.fruitless()),
                            std::max(progress_.step(), before ? before->step : Step()),
                            progress_.has_heard_pacer() && (!before || before->is_step_known)});
  roll_back(turn, loss);
}

void Recovery::roll_back(Turn& turn, Loss loss) {
  rollbacks_.count_one(loss != Loss::kLeft);
  drop_generation(turn);
  pausing_.tell_workers(turn, true, to_string(rollbacks_.current()->cause));
  stage_.enter(Stage::kRegather);
  stage_.set_deadline(turn.now + setup_.timeouts.setup);
  condition_.set(turn, JobState::kPaused, to_string(rollbacks_.current()->cause) + "; recovers");
  regathering_.regather(turn);
}

// Told, so that the next chief knows of it: Reclaim::recall().
std::size_t Recovery::count_loss(Turn& turn, const std::string& kind, const Cause& cause) {
  const std::size_t times = rollbacks_.note_loss(turn.now, setup_.config().job.restart_window);
  events_.tell(turn, kind, 2,
               "loss number " + std::to_string(times) + " within job.restart_window, of at most " +
                   std::to_string(setup_.config().job.max_restarts) + ": " + to_string(cause),
               cause.task, cause.reason);
  return times;
}

Error Recovery::too_many_losses(ErrorCode code, const Cause& cause, std::size_t times) const {
  return Error{code, cause.reason + "; it is the loss number " + std::to_string(times) +
                         " within job.restart_window, and job.max_restarts is " +
                         std::to_string(setup_.config().job.max_restarts)};
}

// Nothing that belongs to it is of use any more.
void Recovery::drop_generation(Turn& turn) {
  checkpointing_.abandon(turn, "the job rolls back");
  folder_.stop_asking();
  held_.drop_sends();
  progress_.drop_generation();
  stage_.await_nobody();
  fences_.drop_generation();
  pauses_.drop_generation();
  suspicions_.clear();
  schedule_.drop_generation();
  loans_.drop_generation();
  workers_.drop_generation();
}

}  // namespace disttrain::chiefd
