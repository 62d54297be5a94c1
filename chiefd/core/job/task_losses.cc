#include "chiefd/core/job/task_losses.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "common/format_duration.h"

namespace disttrain::chiefd {
namespace {

// A rollback would lose the training since the newest checkpoint. So the job waits for a silent ps for as long as this
// training took. It waits at least Timeouts::silent_ps, and at most this long, or job.ps_timeout if that is shorter.
constexpr int kMostPatience = 60;  // heartbeat timeouts

// True if the generation may have applied steps that are in no checkpoint.
bool has_trained(Stage stage) {
  return stage == Stage::kTrain || stage == Stage::kReclaim || stage == Stage::kSettle || stage == Stage::kFinalCut ||
         stage == Stage::kEvaluate;
}

}  // namespace

TaskLosses::TaskLosses(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      pauses_(parts.pauses),
      members_(parts.members),
      membership_(parts.membership),
      pausing_(parts.pausing),
      regathering_(parts.regathering),
      reclaim_(parts.reclaim),
      recovery_(parts.recovery),
      start_failures_(parts.start_failures),
      schedule_(parts.schedule),
      checkpointing_(parts.checkpointing),
      closing_(parts.closing),
      ending_(parts.ending) {}

void TaskLosses::on_loss(Turn& turn, const Finding& finding) {
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
    return recovery_.recover(turn, {member.task, finding.why}, loss);
  }
  lose_worker(turn, finding, loss);
}

void TaskLosses::lose_worker(Turn& turn, const Finding& finding, Loss loss) {
  const Member& member = finding.member;
  if (stage_.is(Stage::kTrain)) return membership_.lose(turn, member, finding.why, loss);
  if (stage_.is(Stage::kReclaim)) {
    if (finding.was_told_to_end) reclaim_.note_told_to_end(to_string(member.task));
    if (stage_.awaits_anyone()) return membership_.lose(turn, member, finding.why, loss);
    return reclaim_.on_gone(member);  // advance() handles the loss later
  }
  if (!has_trained(stage_.at())) return lose_at_start(turn, finding, loss);
  workers_.mark_lost(member);
  // The last checkpoint must not wait for marks of the lost worker.
  if (stage_.is(Stage::kSettle) || stage_.is(Stage::kFinalCut)) {
    std::vector<Member> others = workers_.roster().members;
    std::erase(others, member);
    membership_.change_roster(turn, std::move(others), std::nullopt);
    checkpointing_.interrupt(turn, to_string(member.task) + " is lost");
  }
  if (stage_.is(Stage::kEvaluate) && stage_.awaits(member)) ending_.finish_evaluation(turn, loss);
}

void TaskLosses::lose_at_start(Turn& turn, const Finding& finding, Loss loss) {
  const Member& member = finding.member;
  if (loss == Loss::kLeft || !start_failures_.may_start_without(turn, member))
    return recovery_.recover(turn, {member.task, finding.why}, loss);
  if (stage_.is(Stage::kOpen))
    return start_failures_.note(turn, member, Error{ErrorCode::kUnavailable, finding.why}, false);
  const Loss start_loss = start_failures_.loss_of(member.task);
  candidates_.note_lost_at_start(member.task);
  membership_.tell_loss(turn, member, finding.why, loss);
  recovery_.recover(turn, {member.task, finding.why}, start_loss);
}

bool TaskLosses::check_silence(Turn& turn) {
  for (const auto& [task, silence] : pauses_.silent_ps()) {
    const Duration lasts = turn.now - silence.since;
    if (lasts <= patience_with_ps(silence.since) || condition_.has_ended()) continue;
    if (silence.is_link)
      recovery_.recover(turn, {std::nullopt, silence.why}, Loss::kLink);
    else
      recovery_.recover(turn, {task, "it has been silent for " + format_duration(lasts)},
                        turn.tasks.find(task)->leaving ? Loss::kLeft : Loss::kCounts);
    return true;
  }
  return false;
}

Duration TaskLosses::patience_with_ps(Instant silent_since) const {
  const Duration age = silent_since - schedule_.newest_at();
  const Duration limit = setup_.config().job.ps_timeout;
  const Duration most = setup_.timeouts.silent * kMostPatience;
  const Duration longest = limit == Duration::zero() ? most : std::min(most, limit);
  return std::clamp(age, setup_.timeouts.silent_ps, std::max(longest, setup_.timeouts.silent_ps));
}

void TaskLosses::pause(Turn& turn, const Finding& finding) {
  pauses_.note_silent(finding.member.task, Silence{turn.now});
  if (checkpointing_.is_owed_by(finding.member))
    checkpointing_.abandon(turn, to_string(finding.member.task) + " is silent");
  const std::string reason = to_string(Cause{finding.member.task, finding.why}) + "; waiting for it to return";
  pausing_.tell_workers(turn, true, reason);
  condition_.set(turn, JobState::kPaused, reason);
}

}  // namespace disttrain::chiefd
