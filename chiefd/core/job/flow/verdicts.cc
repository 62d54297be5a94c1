// Carries out the verdicts of rules.
#include <variant>
#include <vector>

#include "chiefd/core/job/flow/flow.h"
#include "chiefd/core/job/flow/overloaded.h"

namespace disttrain::chiefd::flow {
namespace {

void describe_with(JobFacts& job, Turn& turn, const Describe& verdict) {
  if (!verdict.warning.empty()) job.warnings.add(verdict.warning);
  describe(job, turn, verdict.workers);
}

// In stage kDescribe one of the workers may describe the model and the data, or fail, while the others are given up.
void describe_without(JobFacts& job, Turn& turn, const DescribeWithout& verdict) {
  for (const Member& worker : verdict.workers)
    if (job.stage.is(Stage::kDescribe) && job.stage.awaits(worker))
      on_describe_failed(job, turn, worker, verdict.error);
}

void start_without(JobFacts& job, Turn& turn, const StartWithout& verdict) {
  for (const Member& worker : verdict.workers) note_start_failure(job, turn, worker, verdict.error, verdict.is_process);
}

void start_again_without(JobFacts& job, Turn& turn, const StartAgainWithout& verdict) {
  job.candidates.note_lost_at_start(verdict.worker.task);
  tell_loss(job, turn, verdict.worker, verdict.why, Loss::kCounts);
  recover(job, turn, {verdict.worker.task, verdict.why}, verdict.loss);
}

void evaluate_without(JobFacts& job, Turn& turn, const EvaluateWithout& verdict) {
  if (verdict.error) return on_evaluation_failed(job, turn, verdict.worker, *verdict.error);
  job.workers.mark_lost(verdict.worker);
  evaluate(job, turn, Loss::kLink);
}

void keep_owners(JobFacts& job, Turn& turn, const KeepOwners& verdict) {
  if (verdict.forgets_links) job.links.forget_peers();
  job.generation.keep_owners(turn.tasks);
}

void join_now(JobFacts& job, Turn& turn, const Member& worker) {
  job.candidates.let_in(worker.task);
  join(job, turn, worker);
}

}  // namespace

void carry_out(JobFacts& job, Turn& turn, const Verdict& verdict) {
  std::visit(Overloaded{
                 [](const Stay&) {},
                 [&](const Fail& v) { fail_job(job, turn, v.error, v.root); },
                 [&](const Recover& v) { recover(job, turn, v.cause, v.loss); },
                 [&](const RollBack& v) { begin_rollback(job, turn, v.cause, v.loss); },
                 [&](const StartOver&) { gather_again(job, turn); },
                 [&](const Close& v) { close_job(job, turn, v.end, v.reason); },
                 [&](const Release& v) { release(job, turn, v.reason); },
                 [&](const StopSteps& v) { stop_steps(job, turn, v.reason, v.ends_by_itself); },
                 [&](const StopWithout& v) { stop_without(job, turn, v); },
                 [&](const Settle&) { settle(job, turn); },
                 [&](const ShareRest& v) { share_rest(job, turn, v); },
                 [&](const FinishEvaluation&) { finish_evaluation(job, turn); },
                 [&](const Extend& v) { job.stage.set_deadline(v.until); },
                 [&](const WaitAgain& v) { job.stage.set_deadline(v.until); },
                 [&](const PauseForPs& v) { pause_for_ps(job, turn, v); },
                 [&](const PauseForWorkers& v) { pause_for_workers(job, turn, v.reason); },
                 [&](const EndShortage& v) { end_shortage(job, turn, v.why); },
                 [&](const PauseForDisk& v) { pause_for_disk(job, turn, v.reason); },
                 [&](const EndDiskPause& v) { end_disk_pause(job, turn, v.why); },
                 [&](const Await& v) { await(job, turn, v); },
                 [&](const Describe& v) { describe_with(job, turn, v); },
                 [&](const AskOthers& v) { ask_others(job, turn, v); },
                 [&](const SetFirstRoster&) { set_roster(job, turn); },
                 [&](const StartWithOthers& v) { start_with_others(job, turn, v); },
                 [&](const GatherAgain& v) { gather_after_loss(job, turn, v); },
                 [&](const KeepOwners& v) { keep_owners(job, turn, v); },
                 [&](const PlaceAnew& v) { job.generation.place(v.placed); },
                 [](const LackPs&) {},  // rules::next_missing() tells
                 [&](const Invite& v) { invite(job, turn, v.worker); },
                 [&](const ChooseRoster& v) { job.workers.choose_members(v.roster); },
                 [&](const MakePlaces& v) { job.generation.make_places(v.places); },
                 [&](const AwaitTasks& v) { await_tasks(job, v); },
                 [&](const BeginNext&) { begin_next(job, turn); },
                 [&](const TakeCheckpoint& v) { begin_attempt(job, turn, v.at); },
                 [&](const TakeLastCheckpoint&) { take_last_checkpoint(job, turn); },
                 [&](const EvaluateLast&) { evaluate(job, turn); },
                 [&](const GiveUpAttempt& v) { abandon_attempt(job, turn, v.why, true); },
                 [&](const Commit&) { commit_attempt(job, turn); },
                 [&](const Lose& v) { lose_worker(job, turn, v.worker, v.why, v.loss); },
                 [&](const EndWithout& v) { end_without(job, turn, v); },
                 [&](const Reclaim&) { reclaim_job(job, turn); },
                 [&](const AwaitAgain& v) { job.reclaim.back.erase(v.worker); },  // advance_reclaim() asks later
                 [&](const LeaveOut& v) { leave_out(job, turn, v.worker, v.why); },
                 [&](const KeepOut& v) { keep_out(job, turn, v.worker, v.why); },
                 [&](const LetIn& v) { job.candidates.let_in(v.worker); },
                 [&](const Join& v) { join_now(job, turn, v.worker); },
                 [&](const Refuse& v) {
                   tell(job, turn, "worker_refused", 2, to_string(v.worker.task) + " can't take part: " + v.why,
                        v.worker.task);
                 },
                 [&](const AskAgain& v) { ask_again_later(job, turn, v.worker, v.why); },
                 [&](const DescribeWithout& v) { describe_without(job, turn, v); },
                 [&](const StartWithout& v) { start_without(job, turn, v); },
                 [&](const StartAgainWithout& v) { start_again_without(job, turn, v); },
                 [&](const EvaluateWithout& v) { evaluate_without(job, turn, v); },
                 [&](const Suspect& v) { suspect(job, turn, v.from, v.error); },
                 [&](const WaitForLinks& v) { wait_for_links(job, turn, v.ps); },
                 [&](const GiveUpEvaluators& v) { give_up_evaluators(job, turn, v.why); },
                 [&](const SetCheckpointAside& v) { set_aside(job, turn, v.damage); },
                 [&](const LeaveBehind&) { leave_behind(job, turn); },
             },
             verdict);
}

void carry_out_all(JobFacts& job, Turn& turn, const std::vector<Verdict>& verdicts) {
  for (const Verdict& verdict : verdicts) carry_out(job, turn, verdict);
}

}  // namespace disttrain::chiefd::flow
