#include "chiefd/core/job/ending.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "chiefd/core/job/parts.h"
#include "chiefd/core/job/roster_order.h"

namespace disttrain::chiefd {

Ending::Ending(JobParts& parts)
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
      suspicions_(parts.suspicions),
      recovery_(parts.recovery),
      quorum_(parts.quorum),
      training_(parts.training),
      checkpointing_(parts.checkpointing),
      evaluators_(parts.evaluators),
      closing_(parts.closing) {}

void Ending::stop(Turn& turn, const std::string& user) {
  if (condition_.has_ended() || stage_.is(Stage::kClose) || condition_.is_stopping()) return;
  const std::string reason = "stopped by " + user;
  if (stage_.is(Stage::kQueued)) return release(turn, reason);
  // A job that trains doesn't close at once, because it first saves its progress. In stage kTrain the workers are told
  // to stop. In the stages kSettle and kFinalCut the job is about to end anyway. After a restart of the chief (stage
  // kReclaim) the stop waits until the tasks are back.
  const bool ends_by_itself = stage_.is(Stage::kReclaim) || stage_.is(Stage::kSettle) || stage_.is(Stage::kFinalCut);
  if (!stage_.is(Stage::kTrain) && !ends_by_itself) {
    const std::string when = stage_.is(Stage::kEvaluate) ? " during its last evaluation"
                             : rollbacks_.current()      ? " while the job recovered"
                                                         : " before the job trained";
    return closing_.close(turn, JobState::kStopped, reason + when);
  }
  condition_.begin_stopping(reason);
  if (checkpointing_.is_holding()) checkpointing_.interrupt(turn, reason);
  const std::string at = condition_.reason();
  condition_.set(turn, JobState::kStopping, reason);
  if (ends_by_itself)
    condition_.explain(condition_.reason() + "; " + at);
  else
    end_steps(turn);
}

void Ending::stop_early(Turn& turn, const std::string& reason) {
  if (!stage_.is(Stage::kTrain) || condition_.is_stopping()) return;
  condition_.begin_stopping(reason, true);
  if (checkpointing_.is_holding()) checkpointing_.interrupt(turn, reason);
  condition_.set(turn, JobState::kStopping, reason);
  end_steps(turn);
}

// Ends a job that is still in the queue. No task holds anything of it, so the chief tells no task to close.
void Ending::release(Turn& turn, const std::string& reason) {
  stage_.enter(Stage::kReleased);
  condition_.set(turn, JobState::kStopped, reason);
}

void Ending::end_steps(Turn& turn) {
  condition_.explain(condition_.end_reason() + "; the job waits for the workers to end their step");
  stage_.wait_since(turn.now);
  stage_.set_deadline(turn.now + std::max(setup_.timeouts.close, setup_.config().job.stall_timeout));
  if (pauses_.is_short()) quorum_.check(turn);
  // A worker that has stopped never makes another step in this generation. So it must not stop before the record of the
  // stop is durable: after a restart the chief would go on with the job, and wait for this worker's steps for ever.
  for (const Member& worker : workers_.unfinished())
    held_.send_behind_all(turn, worker.task, StopJob{setup_.id, generation_.number()});
  training_.check_end(turn);
}

void Ending::kill(Turn& turn, const std::string& user) {
  if (condition_.has_ended() || stage_.is(Stage::kClose)) return;
  const std::string reason = "killed by " + user;
  if (stage_.is(Stage::kQueued)) return release(turn, reason);
  closing_.close(turn, JobState::kStopped, reason);
}

void Ending::fail(Turn& turn, Error error, std::optional<TaskId> root) {
  if (condition_.has_ended() || stage_.is(Stage::kClose)) return;
  suspicions_.clear();
  condition_.blame(error, root);
  condition_.set(turn, JobState::kFailed, to_string(Cause{root, error.message}));
  closing_.close(turn, JobState::kFailed, condition_.reason());
}

void Ending::on_all_finished(Turn& turn) {
  stage_.enter(Stage::kSettle);
  pauses_.end_shortage();
  if (checkpointing_.is_holding()) checkpointing_.interrupt(turn, "the job has done all its steps");
  const Member& pacer = generation_.pacer();
  stage_.await(turn.now, {pacer}, turn.now + setup_.answer_limit());
  const Roster& roster = workers_.change(workers_.living());
  held_.hold(turn.persist(RosterRecord{setup_.id, generation_.number(), roster}),
             Send{pacer.task, roster_order(setup_, stage_, condition_, generation_, workers_)});
}

void Ending::evaluate(Turn& turn, Loss loss) {
  if (condition_.is_stopping() && !condition_.finishes_early())
    return closing_.close(turn, JobState::kStopped, condition_.end_reason());
  condition_.end_stopping();
  if (!setup_.evaluates()) return finish(turn);
  stage_.enter(Stage::kEvaluate);
  if (!evaluators_.await_all(turn)) finish_evaluation(turn, loss);
}

void Ending::finish(Turn& turn) {
  const std::string& why = evaluators_.book().record().early_end;
  const std::string steps = "trained " + std::to_string(progress_.step().value) + " steps";
  closing_.close(turn, JobState::kFinished, why.empty() ? "" : steps + ", and " + why);
}

void Ending::finish_evaluation(Turn& turn, Loss loss) {
  if (evaluators_.has_evaluated_last()) return finish(turn);
  const std::vector<Member> living = workers_.living();
  if (living.empty())
    return recovery_.recover(turn, {std::nullopt, "no worker is left for the final evaluation"}, loss);
  const Member& worker = living.front();
  condition_.set(turn, JobState::kEvaluating, to_string(worker.task) + " evaluates the final parameters");
  stage_.await(turn.now, {worker}, turn.now + setup_.timeouts.setup + setup_.config().job.stall_timeout);
  turn.send(worker.task, Evaluate{setup_.id, generation_.number()});
}

void Ending::on_evaluated(Turn& turn, const Member& from, const Evaluated& evaluated) {
  progress_.moved(turn.now);
  progress_.note_stalled(evaluated);
  evaluators_.on_evaluated_by_worker(turn, evaluated);
  if (evaluated.final && stage_.is(Stage::kEvaluate) && stage_.answered(from) &&
      !evaluators_.await_all(turn))  // a checkpoint may have been committed meanwhile
    finish(turn);
}

void Ending::on_evaluation_failed(Turn& turn, const Member& from, const Error& error) {
  std::vector<Member> others = workers_.living();
  std::erase(others, from);
  if (others.empty()) return fail(turn, error, from.task);
  const bool evaluates = stage_.awaits(from);
  const std::string name = to_string(from.task);
  events_.warn("lost " + name + ": " + error.message);
  events_.tell(turn, kWorkerLost, 2, "goes on without " + name + ": " + error.message, from.task);
  workers_.mark_lost(from);
  turn.send(from.task,
            CloseJob{setup_.id, generation_.number(), "the job goes on without this task: " + error.message, true});
  if (evaluates) finish_evaluation(turn, Loss::kCounts);
}

}  // namespace disttrain::chiefd
