// A job that trains: the reports of its pacer and workers, and the end of its training.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/rules/stall.h"
#include "chiefd/core/job/rules/workers.h"
#include "chiefd/core/job/views/end.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::flow {
namespace {

// In the stages kRegather and kFind the figures of the generation are added to those before it already.
void note_pacer(JobFacts& job, Turn& turn, const PacerReport& report) {
  if (job.stage.is(Stage::kRegather) || job.stage.is(Stage::kFind)) return;
  if (!job.progress.note(turn.now, report, job.generation.first_step())) return;
  if (job.progress.note_furthest()) job.rollbacks.note_advance();
  job.loans.lending.note_pacer(report);
  if (!job.stage.is(Stage::kTrain)) return;
  lend(job, turn);
  check_end(job, turn);
  if (job.stage.is(Stage::kTrain)) advance_checkpoint(job, turn);
}

}  // namespace

void on_heartbeat(JobFacts& job, Turn& turn, const Member& from, const Heartbeat& heartbeat) {
  if (job.workers.is_taking_part(from)) {
    job.worker_figures.note_steps(from, heartbeat.steps);
    job.faults.note_steps(from, heartbeat.steps);
    job.worker_figures.note_metrics(from, heartbeat.metrics);
    job.workers.note_wires(from, heartbeat.wires);
    if (job.setup.submission.warmup_steps > 0 && job.progress.report().measured_steps > 0)
      job.worker_figures.end_warmup(from, heartbeat.phase_times);
  }
  if (job.generation.owners().empty() || from != job.generation.pacer() || !heartbeat.pacer) return;
  note_pacer(job, turn, *heartbeat.pacer);
}

void on_roster_applied(JobFacts& job, Turn& turn, const RosterApplied& applied) {
  for (const OwnBatches& own : applied.batches) job.workers.note_own_batches(own.worker, own.batches);
  note_pacer(job, turn, applied.pacer);
  on_fence_roster_applied(job, turn, applied.version);
  if (applied.version != job.workers.roster().version) return;
  const Member& pacer = job.generation.pacer();
  if (job.stage.is(Stage::kRoster) && job.stage.answered(pacer)) return start_training(job, turn);
  if (job.stage.is(Stage::kSettle) && job.stage.answered(pacer)) return end_last_step(job, turn);
  // After a restart of the chief (stage kReclaim), an answer counts only if the chief waits for it. An answer to a
  // request from before the restart may still be under way.
  const bool is_reclaimed = job.stage.is(Stage::kReclaim) && job.stage.awaits(pacer);
  if ((!job.stage.is(Stage::kTrain) && !is_reclaimed) || job.loans.is_allowed) return;
  // The chief knows the ledger now. In sync, the shards begin the unfinished step again with this roster. The records
  // of this step aren't in the ledger yet, so the chief lends them again.
  job.loans.is_allowed = true;
  if (is_reclaimed)
    end_reclaim(job, turn);
  else
    lend_to_new_roster(job);
  lend(job, turn);
  check_quorum(job, turn);
  invite_all(job, turn);
  // A client has stopped the job while the chief waited for the pacer's answer, or before the chief was restarted. The
  // chief tells the workers now.
  if (job.condition.is_stopping() && job.stage.is(Stage::kTrain) && !job.stage.deadline()) return end_steps(job, turn);
  check_end(job, turn);
}

void on_worker_finished(JobFacts& job, Turn& turn, const Member& from, const WorkerFinished& finished) {
  job.worker_figures.note_steps(from, finished.steps);
  // The worker leaves before its work is done. The other workers, or the next process of its task, do the rest.
  if (job.workers.was_told_to_stop(from) && !job.condition.is_stopping()) return job.workers.note_stopped(from);
  if (!job.workers.finish(from)) return;
  job.idle_since.reset();
  job.loans.forget(from);
  check_end(job, turn);
  // In sync, other workers of a job that is being stopped may be within a step that this worker won't take part in. A
  // roster without this worker lets them finish the step.
  if (job.stage.is(Stage::kTrain) && job.condition.is_stopping() && job.setup.is_sync() &&
      !job.workers.unfinished().empty()) {
    std::vector<Member> others = job.workers.roster().members;
    std::erase(others, from);
    change_roster(job, turn, std::move(others), std::nullopt);
  }
}

void check_end(JobFacts& job, Turn& turn) {
  carry_out(job, turn, rules::training_end(job));
}

// In sync, a worker finishes when it has used up the last block of its roster. It may do so just before it hears of a
// roster without a lost worker, or with one that has joined. Then records are lent again. The pause lets the pacer
// report the last steps.
void review_finished(JobFacts& job, Turn& turn) {
  if (!views::waits_for_finished(job)) return job.idle_since.reset();
  if (!job.idle_since) job.idle_since = turn.now;
  carry_out(job, turn, rules::finished_too_early(job, turn.now));
}

void share_rest(JobFacts& job, Turn& turn, const ShareRest& verdict) {
  job.idle_since.reset();
  if (!verdict.roster.empty()) return void(change_roster(job, turn, verdict.roster, std::nullopt));
  for (const Member& worker : job.workers.living())
    if (job.stage.is(Stage::kTrain))  // the loss of one may end the job
      lose_worker(job, turn, worker, "it has finished, but records of a lost worker are left; it joins again",
                  Loss::kLeft);
}

void check_stall(JobFacts& job, Turn& turn) {
  if (job.pauses.is_any_silent()) return;
  if (views::leaving_owner(job, turn.tasks)) job.progress.moved(turn.now);
  excuse_unheard_debtors(job, turn);
  const Verdict late = rules::late_fence(job, turn.now);
  if (!std::holds_alternative<Stay>(late)) return carry_out(job, turn, late);
  carry_out(job, turn, rules::stalled(job, turn.tasks, turn.now));
}

}  // namespace disttrain::chiefd::flow
