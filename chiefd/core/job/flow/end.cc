// Ends a job: after its last step, after a stop or kill by a client, or after a failure. The chief journals the end,
// and then tells the job's tasks to release the job. The next job may start when all tasks have released this one, or
// haven't done so within Timeouts::close. If the workers close first, the ps tasks get the same time after them.
//
//   close_job()       enters stage kClose and writes the EndRecord
//   begin_closing()   the EndRecord is durable, or the disk has hung for too long; tells the tasks to close
//   finish_closing()  enters stage kReleased; the state of the job is final
//
// Tasks that were told to end (SIGTERM) leave in good order. A worker stops between two pushes. The job then removes it
// like a lost worker, but no push is under way, and the removal doesn't count as a loss. Before a ps leaves, the
// workers pause and the job takes a checkpoint. The shards apply nothing after it, so the rollback to it loses no step.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/job/roster_order.h"
#include "chiefd/core/job/rules/end.h"
#include "chiefd/core/job/views/end.h"
#include "chiefd/core/job/views/evaluations.h"
#include "chiefd/core/job/views/members.h"

namespace disttrain::chiefd::flow {
namespace {

// The steps of a job that is being stopped must be able to end, so none may need a worker that makes no more. With
// job.on_worker_loss = "wait" the roster keeps lost workers. In sync a worker may have finished before the others.
void release_absent(JobFacts& job, Turn& turn) {
  std::vector<Member> living = job.workers.roster().members;
  std::erase_if(living, [&job](const Member& worker) {
    return job.workers.is_lost(worker) || (job.setup.is_sync() && !job.workers.is_unfinished(worker));
  });
  if (living.empty() || living.size() == job.workers.roster().members.size()) return;
  change_roster(job, turn, std::move(living), std::nullopt);
}

void finish(JobFacts& job, Turn& turn) {
  const std::string& why = job.evaluations.book.record().early_end;
  const std::string steps = "trained " + std::to_string(job.progress.step().value) + " steps";
  close_job(job, turn, JobState::kFinished, why.empty() ? "" : steps + ", and " + why);
}

void tell_to_close(JobFacts& job, Turn& turn, std::vector<Member> members) {
  std::erase_if(members,
                [&](const Member& member) { return !turn.tasks.is_current(member) || job.workers.is_lost(member); });
  // A silent task is told too, but the job doesn't wait for its answer. If the message is lost, the chief tells the
  // task at its first hello after the job is released.
  std::vector<Member> heard = members;
  std::erase_if(heard, [&turn](const Member& member) { return !turn.tasks.find(member.task)->is_there(); });
  job.stage.await(turn.now, heard, turn.now + job.setup.timeouts.close);
  for (const Member& member : members)
    turn.send(member.task, CloseJob{job.setup.id, job.generation.number(), job.condition.end_reason()});
}

}  // namespace

// Ends a job that is still in the queue. No task holds anything of it, so the chief tells no task to close.
void release(JobFacts& job, Turn& turn, const std::string& reason) {
  job.stage.enter(Stage::kReleased);
  set_state(job, turn, JobState::kStopped, reason);
}

void stop(JobFacts& job, Turn& turn, const std::string& user) {
  carry_out(job, turn, rules::stopped_by_client(job, "stopped by " + user));
}

void stop_steps(JobFacts& job, Turn& turn, const std::string& reason, bool ends_by_itself) {
  const bool finished_early = job.condition.finishes_early();
  job.condition.begin_stopping(reason);
  if (job.attempts.is_holding()) interrupt_attempt(job, turn, reason);
  const std::string at = job.condition.reason();
  set_state(job, turn, JobState::kStopping, reason);
  if (finished_early) journal_state(job, turn);  // the state isn't new
  if (ends_by_itself)
    job.condition.explain(job.condition.reason() + "; " + at);
  else
    end_steps(job, turn);
}

void stop_early(JobFacts& job, Turn& turn, const std::string& reason) {
  if (!job.stage.is(Stage::kTrain) || job.condition.is_stopping()) return;
  job.condition.begin_stopping(reason, true);
  if (job.attempts.is_holding()) interrupt_attempt(job, turn, reason);
  set_state(job, turn, JobState::kStopping, reason);
  end_steps(job, turn);
}

void give_steps_time(JobFacts& job, Instant now) {
  job.stage.wait_since(now);
  job.stage.set_deadline(now + std::max(job.setup.timeouts.close, job.setup.config().job.stall_timeout));
}

void end_steps(JobFacts& job, Turn& turn) {
  job.condition.explain(job.condition.end_reason() + "; the job waits for the workers to end their step");
  give_steps_time(job, turn.now);
  release_absent(job, turn);
  if (job.pauses.is_short()) check_quorum(job, turn);
  // A worker that has stopped never makes another step in this generation. So it must not stop before the record of the
  // stop is durable: after a restart the chief would go on with the job, and wait for this worker's steps for ever.
  for (const Member& worker : job.workers.unfinished())
    send_behind_all(job, turn, worker.task, StopJob{job.setup.id, job.generation.number()});
  check_end(job, turn);
}

void stop_without(JobFacts& job, Turn& turn, const StopWithout& verdict) {
  for (const Member& worker : verdict.workers)
    if (job.stage.is(Stage::kTrain)) lose_worker(job, turn, worker, verdict.why);  // the loss of the last one settles
}

void kill(JobFacts& job, Turn& turn, const std::string& user) {
  carry_out(job, turn, rules::killed_by_client(job, "killed by " + user));
}

void fail_job(JobFacts& job, Turn& turn, Error error, std::optional<TaskId> root) {
  if (job.condition.has_ended() || job.stage.is(Stage::kClose)) return;
  job.suspicions.clear();
  job.condition.blame(error, root);
  set_state(job, turn, JobState::kFailed, to_string(Cause{root, error.message}));
  close_job(job, turn, JobState::kFailed, job.condition.reason());
}

void settle(JobFacts& job, Turn& turn) {
  job.stage.enter(Stage::kSettle);
  job.evaluations.is_given_up = false;
  job.pauses.end_shortage();
  if (job.attempts.is_holding()) interrupt_attempt(job, turn, "the job has done all its steps");
  const Member& pacer = job.generation.pacer();
  job.stage.await(turn.now, {pacer}, turn.now + job.setup.answer_limit());
  // In sync, workers that have finished leave the roster of a job that is being stopped. One of them evaluates if the
  // others were lost.
  std::vector<Member> last = job.workers.living();
  if (last.empty()) {
    last = job.workers.unlost();
    if (last.size() > 1) last.resize(1);
  }
  const Roster& roster = job.workers.change(std::move(last));
  job.held.hold(turn.persist(RosterRecord{job.setup.id, job.generation.number(), roster}),
                Send{pacer.task, roster_order(job.setup, job.stage, job.condition, job.generation, job.workers)});
}

void evaluate(JobFacts& job, Turn& turn, Loss loss) {
  if (job.condition.is_stopping() && !job.condition.finishes_early())
    return close_job(job, turn, JobState::kStopped, job.condition.end_reason());
  job.condition.end_stopping();
  if (!job.setup.evaluates()) return finish(job, turn);
  job.stage.enter(Stage::kEvaluate);
  if (!await_evaluations(job, turn)) finish_evaluation(job, turn, loss);
}

void finish_evaluation(JobFacts& job, Turn& turn, Loss loss) {
  if (views::has_evaluated_last(job)) return finish(job, turn);
  const std::vector<Member> living = job.workers.living();
  if (living.empty()) return recover(job, turn, {std::nullopt, "no worker is left for the final evaluation"}, loss);
  const Member& worker = living.front();
  set_state(job, turn, JobState::kEvaluating, to_string(worker.task) + " evaluates the final parameters");
  job.stage.await(turn.now, {worker}, turn.now + job.setup.timeouts.setup + job.setup.config().job.stall_timeout);
  turn.send(worker.task, Evaluate{job.setup.id, job.generation.number()});
}

void on_evaluated(JobFacts& job, Turn& turn, const Member& from, const Evaluated& evaluated) {
  job.progress.moved(turn.now);
  job.progress.note_stalled(evaluated);
  on_evaluated_by_worker(job, turn, evaluated);
  if (evaluated.final && job.stage.is(Stage::kEvaluate) && job.stage.answered(from) &&
      !await_evaluations(job, turn))  // a checkpoint may have been committed meanwhile
    finish(job, turn);
}

void on_evaluation_failed(JobFacts& job, Turn& turn, const Member& from, const Error& error) {
  std::vector<Member> others = job.workers.living();
  std::erase(others, from);
  if (others.empty()) return fail_job(job, turn, error, from.task);
  const bool evaluates = job.stage.awaits(from);
  const std::string name = to_string(from.task);
  job.warnings.add("lost " + name + ": " + error.message);
  tell(job, turn, kWorkerLost, 2, "goes on without " + name + ": " + error.message, from.task);
  job.workers.mark_lost(from);
  turn.send(from.task, CloseJob{job.setup.id, job.generation.number(),
                                "the job goes on without this task: " + error.message, true});
  if (evaluates) finish_evaluation(job, turn, Loss::kCounts);
}

void close_job(JobFacts& job, Turn& turn, JobState end, const std::string& reason) {
  abandon_attempt(job, turn, "the job ends");
  keep_last(job, turn);
  close_folder(job, turn);
  refuse_savers(job, turn, ErrorCode::kTemporary, "the job ends");
  job.stage.enter(Stage::kClose);
  job.pauses.forget_silent();
  job.suspicions.clear();
  job.closing.end = end;
  job.condition.end_for(!reason.empty() ? reason : "trained " + std::to_string(job.progress.step().value) + " steps");
  job.progress.end_at(views::reached(job));
  job.rollbacks.end();
  job.stage.set_ticket(turn.persist(views::end_record(job, turn.now)));
  job.closing.is_end_written = false;
  job.closing.journaled_step = job.progress.step();
  job.stage.await_nobody();
  job.stage.clear_deadline();
  if (end == JobState::kStopped) set_state(job, turn, JobState::kStopping, job.condition.end_reason());
  // Drops the messages that still wait for their journal records, such as lease grants: the job has ended.
  job.held.drop_sends();
  job.held.watch(job.stage.ticket());
}

void begin_closing(JobFacts& job, Turn& turn) {
  job.closing.is_end_written = true;
  close_evaluators(job, turn);
  // After a normal end the workers close before the ps tasks, so that no worker loses a shard that it still uses. After
  // a failure or a kill all tasks close at once.
  const bool in_order = job.closing.end == JobState::kFinished || job.condition.is_stopping();
  std::vector<Member> first;
  for (const Member& member : views::all_members(job))
    (in_order && member.task.role == Role::kPs ? job.closing.to_close : first).push_back(member);
  tell_to_close(job, turn, first);
  if (!job.stage.awaits_anyone()) finish_closing(job, turn);
}

void on_released(JobFacts& job, Turn& turn, const Member& member) {
  if (job.stage.answered(member)) finish_closing(job, turn);
}

void finish_closing(JobFacts& job, Turn& turn) {
  if (!job.closing.to_close.empty()) {
    tell_to_close(job, turn, std::exchange(job.closing.to_close, {}));
    if (job.stage.awaits_anyone()) return;
  }
  job.stage.enter(Stage::kReleased);
  job.stage.await_nobody();
  job.stage.clear_deadline();
  // The pacer sends its last report while it closes the job. If that report has a newer step, the end is journaled
  // again.
  if (job.progress.step() != job.closing.journaled_step) turn.persist(views::end_record(job, turn.now));
  if (!job.condition.has_ended()) set_state(job, turn, job.closing.end, job.condition.end_reason());
}

void advance_leavers(JobFacts& job, Turn& turn) {
  if (!job.stage.is(Stage::kTrain) || job.condition.is_stopping()) return;
  for (const Member& member : turn.tasks.leaving()) {
    if (!job.workers.is_unfinished(member) || job.workers.is_joining(member)) continue;
    if (job.workers.tell_to_stop(member)) turn.send(member.task, StopJob{job.setup.id, job.generation.number()});
  }
  const std::optional<TaskId> ps = views::leaving_owner(job, turn.tasks);
  if (!ps || job.schedule.is_saved()) return;
  if (job.condition.state() == JobState::kRunning) {
    const std::string reason = to_string(*ps) + " was told to end; the job takes a checkpoint first";
    tell_pause(job, turn, true, reason);
    set_state(job, turn, JobState::kPaused, reason);
    job.stage.wait_since(turn.now);
    job.schedule.try_at(turn.now);
  }
  if (job.attempts.current.has_value() && !job.attempts.is_holding())
    cut_now(job, turn);  // the workers pause, so a later step wouldn't come
  advance_checkpoint(job, turn);
}

}  // namespace disttrain::chiefd::flow
