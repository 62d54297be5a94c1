// A task of the job is silent or lost. What follows depends on the stage, and on whether the task owns shards.
#include "chiefd/core/job/flow/flow.h"

#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/rules/losses.h"
#include "chiefd/core/job/views/members.h"

namespace disttrain::chiefd::flow {
namespace {

void on_worker_lost(JobFacts& job, Turn& turn, const Finding& finding, Loss loss) {
  const Member& member = finding.member;
  if (job.stage.is(Stage::kTrain)) return lose_worker(job, turn, member, finding.why, loss);
  if (job.stage.is(Stage::kReclaim)) {
    if (finding.was_told_to_end) job.reclaim.told_to_end.insert(to_string(member.task));
    if (job.stage.awaits_anyone()) return lose_worker(job, turn, member, finding.why, loss);
    job.reclaim.back.erase(member);  // advance_reclaim() handles the loss later
    return;
  }
  if (!has_trained(job.stage.at()))
    return carry_out(job, turn, rules::lost_at_start(job, turn.tasks, turn.now, finding));
  job.workers.mark_lost(member);
  // The last checkpoint must not wait for marks of the lost worker.
  if (job.stage.is(Stage::kSettle) || job.stage.is(Stage::kFinalCut)) {
    std::vector<Member> others = job.workers.roster().members;
    std::erase(others, member);
    change_roster(job, turn, std::move(others), std::nullopt);
    interrupt_attempt(job, turn, to_string(member.task) + " is lost");
  }
  if (job.stage.is(Stage::kEvaluate) && job.stage.awaits(member)) finish_evaluation(job, turn, loss);
}

}  // namespace

void on_loss(JobFacts& job, Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  if (job.stage.is(Stage::kRegather)) return regather(job, turn);
  if (!views::uses(job, member)) return;
  if (job.stage.is(Stage::kClose)) {
    if (job.stage.answered(member)) finish_closing(job, turn);
    return;
  }
  if (!job.generation.is_owner(member))
    return on_worker_lost(job, turn, finding, finding.was_told_to_end ? Loss::kLeft : Loss::kCounts);
  carry_out(job, turn, rules::lost_owner(job, finding));
}

bool check_silence(JobFacts& job, Turn& turn) {
  const Verdict verdict = rules::silent_too_long(job, turn.tasks, turn.now);
  carry_out(job, turn, verdict);
  return !std::holds_alternative<Stay>(verdict);
}

}  // namespace disttrain::chiefd::flow
