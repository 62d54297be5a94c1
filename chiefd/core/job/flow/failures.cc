// The failures that tasks report. chiefd/core/job/rules/failures.h decides what follows from each.
#include <map>
#include <string>
#include <variant>

#include "chiefd/core/job/flow/flow.h"
#include "chiefd/core/job/rules/failures.h"
#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::flow {
namespace {

// The worker was preparing (`was_invited`) or opening its channels. The job goes on without it.
void on_failed_to_join(JobFacts& job, Turn& turn, const Member& from, const TaskFailed& failed, bool was_invited) {
  const Verdict verdict = rules::failed_to_join(job, turn.tasks, turn.now, from, failed, was_invited);
  if (!was_invited) {
    lose_worker(job, turn, from, failed.reason,
                std::holds_alternative<LeaveOut>(verdict) ? Loss::kCounts : Loss::kLink);
    if (job.condition.has_ended() || job.stage.is(Stage::kClose)) return;
  }
  carry_out(job, turn, verdict);
}

void on_fault(JobFacts& job, Turn& turn, const Member& from, const TaskFailed& failed) {
  const Faults::Verdict times = job.faults.note(turn.now, from, fault_of(failed.code, failed.reason),
                                                views::living_workers(job), job.setup.config().job.restart_window);
  const Verdict verdict = rules::at_fault(from, failed, times);
  carry_out(job, turn, verdict);
  const bool goes_on = !job.condition.has_ended() && !job.stage.traits().has_closed;
  if (std::holds_alternative<Lose>(verdict) && goes_on)
    carry_out(job, turn, rules::lost_for_own_fault(job, from, failed.reason, times));
}

}  // namespace

void on_task_failed(JobFacts& job, Turn& turn, const Member& from, const TaskFailed& failed) {
  if (job.condition.has_ended() || job.stage.traits().has_closed || job.stage.is(Stage::kQueued)) return;
  // A description belongs to no generation, so a failed description comes with generation 0. Reports about an earlier
  // generation may come at any time and are ignored.
  if (job.stage.is(Stage::kDescribe) && failed.generation.value == 0 && job.stage.awaits(from))
    return on_describe_failed(job, turn, from, Error{failed.code, failed.reason});
  const bool was_invited = failed.generation.value == 0 && job.candidates.end_invitation(from);
  const bool is_joining = failed.generation == job.generation.number() && job.workers.is_joining(from);
  if (was_invited || is_joining) return on_failed_to_join(job, turn, from, failed, was_invited);
  const Verdict verdict = rules::failed(job, turn.tasks, turn.now, from, failed);
  if (std::holds_alternative<Suspect>(verdict) && rules::is_fault(job, from, failed))
    return on_fault(job, turn, from, failed);
  carry_out(job, turn, verdict);
}

void suspect(JobFacts& job, Turn& turn, const Member& from, const Error& error) {
  if (!job.suspicions.try_emplace(from, Suspicion{error, turn.now}).second) return;
  for (const Member& member : views::all_members(job))
    if (member != from) turn.tasks.accuse(member.task, turn.actions);
}

// The job waits for this worker. Its host may have just been started, so what it lacks may come, such as a mounted file
// system.
void ask_again_later(JobFacts& job, Turn& turn, const Member& worker, const std::string& reason) {
  const std::string why =
      std::string("can't take part") + (job.condition.was_opened() ? ", and is asked again: " : ": ") + reason;
  job.candidates.retry_later(worker, turn.now);
  const auto before = job.candidates.kept_out().find(worker.task);
  if (before != job.candidates.kept_out().end() && before->second != why) job.candidates.let_in(worker.task);
  keep_out(job, turn, worker.task, why);
  if (job.stage.is(Stage::kTrain) && job.pauses.is_short())
    job.condition.explain(views::shortage(job, turn.tasks, turn.now));
}

void review_suspicions(JobFacts& job, Turn& turn) {
  // A ps that is silent, or that isn't back after a restart of the chief, may be the reason for the complaints. So they
  // are judged only after that ps has returned.
  if (job.pauses.is_any_silent() || (job.stage.is(Stage::kReclaim) && !job.stage.awaits_anyone())) return;
  for (const auto& [from, suspicion] : std::map(job.suspicions)) {
    if (!rules::is_settled(job, turn.tasks, turn.now, from, suspicion.since)) continue;
    job.suspicions.erase(from);
    if (!views::uses(job, from)) continue;
    const Verdict verdict = rules::settled(job, turn.tasks, turn.now, from, suspicion.error.message);
    const auto* recovery = std::get_if<Recover>(&verdict);
    // The next generation opens the links between ps tasks again.
    if (recovery != nullptr && recovery->loss == Loss::kLink) job.links.forget_peers();
    carry_out(job, turn, verdict);
    if (!std::holds_alternative<Lose>(verdict) && !job.stage.is(Stage::kOpen)) return;
  }
}

}  // namespace disttrain::chiefd::flow
