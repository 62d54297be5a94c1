#include "chiefd/core/job/training_run.h"

#include <algorithm>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

TrainingRun::TrainingRun(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      pauses_(parts.pauses),
      worker_figures_(parts.worker_figures),
      faults_(parts.faults),
      loans_(parts.loans),
      fences_(parts.fences),
      membership_(parts.membership),
      invitations_(parts.invitations),
      quorum_(parts.quorum),
      reclaim_(parts.reclaim),
      checkpointing_(parts.checkpointing),
      final_checkpoint_(parts.final_checkpoint),
      launch_(parts.launch),
      ending_(parts.ending) {}

void TrainingRun::on_heartbeat(Turn& turn, const Member& from, const Heartbeat& heartbeat) {
  if (workers_.is_taking_part(from)) {
    worker_figures_.note_steps(from, heartbeat.steps);
    faults_.note_steps(from, heartbeat.steps);
    worker_figures_.note_metrics(from, heartbeat.metrics);
    workers_.note_wires(from, heartbeat.wires);
    if (setup_.submission.warmup_steps > 0 && progress_.report().measured_steps > 0)
      worker_figures_.end_warmup(from, heartbeat.phase_times);
  }
  if (generation_.owners().empty() || from != generation_.pacer() || !heartbeat.pacer) return;
  note_pacer(turn, *heartbeat.pacer);
}

void TrainingRun::note_pacer(Turn& turn, const PacerReport& report) {
  if (!progress_.note(turn.now, report, generation_.first_step())) return;
  if (progress_.note_furthest()) rollbacks_.note_advance();
  loans_.note_pacer(report);
  if (!stage_.is(Stage::kTrain)) return;
  loans_.lend(turn);
  check_end(turn);
  if (stage_.is(Stage::kTrain)) checkpointing_.advance(turn);
}

void TrainingRun::on_roster_applied(Turn& turn, const RosterApplied& applied) {
  note_pacer(turn, applied.pacer);
  fences_.on_roster_applied(turn, applied.version);
  if (applied.version != workers_.roster().version) return;
  const Member& pacer = generation_.pacer();
  if (stage_.is(Stage::kRoster) && stage_.answered(pacer)) return launch_.start_training(turn);
  if (stage_.is(Stage::kSettle) && stage_.answered(pacer)) return final_checkpoint_.take(turn);
  // After a restart of the chief (stage kReclaim), an answer counts only if the chief waits for it. An answer to a
  // request from before the restart may still be under way.
  const bool is_reclaimed = stage_.is(Stage::kReclaim) && stage_.awaits(pacer);
  if ((!stage_.is(Stage::kTrain) && !is_reclaimed) || loans_.is_allowed()) return;
  // The chief knows the ledger now. In sync, the shards begin the unfinished step again with this roster. The records
  // of this step aren't in the ledger yet, so the chief lends them again.
  loans_.allow();
  if (is_reclaimed)
    reclaim_.on_pacer_answer(turn);
  else
    loans_.roster_applied();
  loans_.lend(turn);
  quorum_.check(turn);
  invitations_.invite_all(turn);
  // A client has stopped the job while the chief waited for the pacer's answer, or before the chief was restarted. The
  // chief tells the workers now.
  if (condition_.is_stopping() && stage_.is(Stage::kTrain) && !stage_.deadline()) return ending_.end_steps(turn);
  check_end(turn);
}

void TrainingRun::on_worker_finished(Turn& turn, const Member& from, const WorkerFinished& finished) {
  worker_figures_.note_steps(from, finished.steps);
  // The worker leaves before its work is done. The other workers, or the next process of its task, do the rest.
  if (workers_.was_told_to_stop(from) && !condition_.is_stopping()) return workers_.note_stopped(from);
  if (!workers_.finish(from)) return;
  idle_since_.reset();
  loans_.forget(from);
  check_end(turn);
  // In sync, other workers of a job that is being stopped may be within a step that this worker won't take part in. A
  // roster without this worker lets them finish the step.
  if (stage_.is(Stage::kTrain) && condition_.is_stopping() && setup_.is_sync() && !workers_.unfinished().empty()) {
    std::vector<Member> others = workers_.roster().members;
    std::erase(others, from);
    membership_.change_roster(turn, std::move(others), std::nullopt);
  }
}

void TrainingRun::check_end(Turn& turn) {
  if (!stage_.is(Stage::kTrain) || !workers_.unfinished().empty()) return;
  if (condition_.is_stopping()) return ending_.on_all_finished(turn);
  const bool has_leases = setup_.config().data.sharding == Sharding::kLease;
  // Training doesn't end while work of a lost worker is left, because another worker has to do this work.
  if (has_leases ? loans_.is_complete() : (progress_.report().finished || workers_.has_living()))
    ending_.on_all_finished(turn);
}

// Returns true if the roster has workers that have finished, although records are left.
bool TrainingRun::waits_for_finished() const {
  if (!stage_.is(Stage::kTrain) || condition_.is_stopping() || pauses_.is_short()) return false;
  if (setup_.config().data.sharding != Sharding::kLease || !loans_.is_allowed() || loans_.is_complete()) return false;
  if (workers_.unfinished().empty()) return workers_.has_living();
  const std::vector<Member> living = workers_.living();
  return setup_.is_sync() && !setup_.waits_for_lost() &&
         std::any_of(living.begin(), living.end(),
                     [this](const Member& worker) { return !workers_.is_unfinished(worker); });
}

// In sync, a worker finishes when it has used up the last block of its roster. It may do so just before it hears of a
// roster without a lost worker, or with one that has joined. Then records are lent again. The pause lets the pacer
// report the last steps.
void TrainingRun::review_finished(Turn& turn) {
  if (!waits_for_finished()) return idle_since_.reset();
  if (!idle_since_) idle_since_ = turn.now;
  if (turn.now - *idle_since_ < setup_.timeouts.silent + setup_.timeouts.heartbeat) return;
  idle_since_.reset();
  std::vector<Member> finished = workers_.living();
  const auto begin = std::stable_partition(finished.begin(), finished.end(),
                                           [this](const Member& worker) { return workers_.is_unfinished(worker); });
  const std::vector<Member> unfinished(finished.begin(), begin);
  if (!unfinished.empty()) return void(membership_.change_roster(turn, unfinished, std::nullopt));
  for (const Member& worker : finished)
    membership_.lose(turn, worker, "it has finished, but records of a lost worker are left; it joins again",
                     Loss::kLeft);
}

bool TrainingRun::is_evaluating(const Tasks& tasks) const {
  return std::any_of(workers_.unfinished().begin(), workers_.unfinished().end(), [&tasks](const Member& worker) {
    const Task* task = tasks.find(worker.task);
    return task != nullptr && task->heartbeat.phase == Phase::kEvaluate;
  });
}

}  // namespace disttrain::chiefd
