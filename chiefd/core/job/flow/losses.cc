// A task of the job is silent or lost. What follows depends on the stage, and on whether the task owns shards.
#include "chiefd/core/job/flow/flow.h"

#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/rules/losses.h"
#include "chiefd/core/job/views/members.h"

namespace disttrain::chiefd::flow {

void on_loss(JobFacts& job, Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  if (job.stage.is(Stage::kRegather)) return regather(job, turn);
  if (job.stage.is(Stage::kClose)) return on_released(job, turn, member);
  if (!views::uses(job, member)) return;
  if (job.generation.is_owner(member)) return carry_out(job, turn, rules::lost_owner(job, finding));
  if (job.stage.is(Stage::kReclaim) && finding.was_told_to_end) job.reclaim.told_to_end.insert(to_string(member.task));
  carry_out(job, turn, rules::lost_worker(job, turn.tasks, turn.now, finding));
}

void end_without(JobFacts& job, Turn& turn, const EndWithout& verdict) {
  const Member& worker = verdict.worker;
  job.workers.mark_lost(worker);
  if (job.stage.is(Stage::kEvaluate)) {
    if (job.stage.awaits(worker)) finish_evaluation(job, turn, verdict.loss);
    return;
  }
  // The last checkpoint must not wait for marks of the lost worker.
  std::vector<Member> others = job.workers.roster().members;
  std::erase(others, worker);
  change_roster(job, turn, std::move(others), std::nullopt);
  interrupt_attempt(job, turn, to_string(worker.task) + " is lost");
}

bool check_silence(JobFacts& job, Turn& turn) {
  const Verdict verdict = rules::silent_too_long(job, turn.tasks, turn.now);
  carry_out(job, turn, verdict);
  return !std::holds_alternative<Stay>(verdict);
}

}  // namespace disttrain::chiefd::flow
