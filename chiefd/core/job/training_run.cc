#include "chiefd/core/job/training_run.h"

#include <algorithm>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {
namespace {

// A worker that evaluates may make the others wait for longer than a step ever should.
constexpr int kEvaluationPatience = 10;

std::string seconds(Duration duration) {
  return std::to_string(static_cast<long>(to_seconds(duration))) + " s";
}

}  // namespace

TrainingRun::TrainingRun(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      worker_figures_(parts.worker_figures),
      pauses_(parts.pauses),
      reachability_(parts.reachability),
      loans_(parts.loans),
      fences_(parts.fences),
      membership_(parts.membership),
      invitations_(parts.invitations),
      quorum_(parts.quorum),
      reclaim_(parts.reclaim),
      checkpointing_(parts.checkpointing),
      leaving_(parts.leaving),
      recovery_(parts.recovery),
      final_checkpoint_(parts.final_checkpoint),
      launch_(parts.launch),
      ending_(parts.ending) {}

void TrainingRun::on_heartbeat(Turn& turn, const Member& from, const Heartbeat& heartbeat) {
  if (workers_.is_taking_part(from)) {
    worker_figures_.note_steps(from, heartbeat.steps);
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
  // An answer to the chief before may still be under way: the tasks aren't together yet.
  const bool is_reclaimed = stage_.is(Stage::kReclaim) && stage_.awaits(pacer);
  if ((!stage_.is(Stage::kTrain) && !is_reclaimed) || loans_.is_allowed()) return;
  // The open step begins anew with this roster: what it takes is what the ledger lacks now.
  loans_.allow();
  if (is_reclaimed)
    reclaim_.on_pacer_answer(turn);
  else
    loans_.roster_applied();
  loans_.lend(turn);
  quorum_.check(turn);
  invitations_.invite_all(turn);
  // Asked for while the chief before, or nobody, could carry it out.
  if (condition_.is_stopping() && stage_.is(Stage::kTrain) && !stage_.deadline()) return ending_.end_steps(turn);
  check_end(turn);
}

void TrainingRun::on_worker_finished(Turn& turn, const Member& from, const WorkerFinished& finished) {
  worker_figures_.note_steps(from, finished.steps);
  // Its part isn't done: the others, or its successor, go on with it.
  if (workers_.was_told_to_stop(from) && !condition_.is_stopping()) return workers_.note_stopped(from);
  if (!workers_.finish(from)) return;
  loans_.forget(from);
  check_end(turn);
  // A synchronous job that is stopped: the others may be within a step that this one won't take part in.
  if (stage_.is(Stage::kTrain) && condition_.is_stopping() && setup_.is_sync() && !workers_.unfinished().empty()) {
    std::vector<Member> others = workers_.roster().members;
    std::erase(others, from);
    membership_.change_roster(turn, std::move(others), std::nullopt);
  }
}

// All have finished, or nobody is left and nothing is left to do.
void TrainingRun::check_end(Turn& turn) {
  if (!stage_.is(Stage::kTrain) || !workers_.unfinished().empty()) return;
  if (condition_.is_stopping()) return ending_.on_all_finished(turn);
  const bool has_leases = setup_.config().data.sharding == Sharding::kLease;
  // What a lost worker left behind needs somebody who takes it.
  if (has_leases ? loans_.is_complete() : (progress_.report().finished || workers_.has_living()))
    ending_.on_all_finished(turn);
}

bool TrainingRun::is_evaluating(const Tasks& tasks) const {
  return std::any_of(workers_.unfinished().begin(), workers_.unfinished().end(), [&tasks](const Member& worker) {
    const Task* task = tasks.find(worker.task);
    return task != nullptr && task->heartbeat.phase == Phase::kEvaluate;
  });
}

void TrainingRun::check_stall(Turn& turn) {
  if (pauses_.is_any_silent()) return;
  if (leaving_.owner(turn.tasks)) progress_.moved(turn.now);
  if (const std::optional<Fences::Late> late = fences_.find_late(turn))
    return recovery_.recover(
        turn, {late->debtor.task, "it heartbeats, but didn't fence " + to_string(late->worker.task) + " within " +
                                      seconds(setup_.answer_limit())});
  if (pauses_.is_short()) return;
  const Duration patience = setup_.config().job.stall_timeout * (is_evaluating(turn.tasks) ? kEvaluationPatience : 1);
  if (condition_.is_stopping() || turn.now - progress_.moved_at() <= patience) return;
  fail_for_stall(turn, patience);
}

void TrainingRun::fail_for_stall(Turn& turn, Duration patience) {
  const RootCause cause = who_is_waited_for(turn.tasks);
  // Both ends of a link may be well.
  std::string links;
  for (const TaskId worker : reachability_.voters(turn.tasks))
    if (const std::string own = reachability_.links_of(turn.now, worker); !own.empty())
      links += (links.empty() ? "" : "; ") + own;
  ending_.fail(turn,
               Error{ErrorCode::kFailed, "no step for " + seconds(patience) + " at step " +
                                             std::to_string(progress_.step().value) + ": " +
                                             (links.empty() ? "" : links + "; ") + cause.reason},
               links.empty() ? std::optional(cause.task) : std::nullopt);
}

// Who is in a phase of its own (input, compute) longest holds the others up; if all wait for an answer, the ps tasks
// do.
RootCause TrainingRun::who_is_waited_for(const Tasks& tasks) const {
  std::string phases;
  const Task* slowest = nullptr;
  for (const Member& worker : workers_.unfinished()) {
    const Task* task = tasks.find(worker.task);
    if (task == nullptr) continue;
    const Heartbeat& heartbeat = task->heartbeat;
    phases += (phases.empty() ? "" : ", ") + to_string(worker.task) + " is in " + to_string(heartbeat.phase) + " for " +
              seconds(heartbeat.in_phase);
    const bool works = heartbeat.phase == Phase::kInput || heartbeat.phase == Phase::kCompute ||
                       heartbeat.phase == Phase::kEvaluate || heartbeat.phase == Phase::kIdle;
    if (works && (slowest == nullptr || heartbeat.in_phase > slowest->heartbeat.in_phase)) slowest = task;
  }
  return RootCause{slowest != nullptr ? slowest->member.task : generation_.pacer().task, phases};
}

}  // namespace disttrain::chiefd
