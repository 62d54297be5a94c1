// How a restarted chief goes on with a job that it finds in its journal.
//
//   the journal has                              the job
//   the end of the job                           closes, because its tasks may not have heard of the end
//   no generation that trains, and no rollback   gathers its tasks again, and loses no step by this
//   a rollback that hasn't ended                 rolls back
//   a generation that trains                     waits for its tasks
//
// In the last case each task says hello with the generation that it holds. If all ps tasks still hold the current one,
// the job goes on and loses no step.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/rules/reclaim.h"
#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/recovery.h"
#include "chiefd/core/job/views/workers.h"
#include "common/mutant.h"

namespace disttrain::chiefd::flow {
namespace {

void begin_reclaim(JobFacts& job, Turn& turn);
std::vector<Member> drop_missing_workers(JobFacts& job, Turn& turn);

// An event of a loss without a later kRolledBack event means that the rollback isn't over. This chief has to end it.
void recall_one(JobFacts& job, Instant now, const EventRecord& event, Duration age, bool counts, bool is_step_known) {
  const std::string& kind = event.kind;
  const bool is_running = kind == to_string(JobState::kRunning);
  if (counts && (kind == kLossCounted || kind == kLostAtStart))
    job.rollbacks.note_loss(now - age, job.setup.config().job.restart_window);
  // The task was told to end. If it is gone now, or is another process, it left in good order.
  if (kind == kTaskLeaves) job.reclaim.told_to_end.insert(event.task);
  if (kind == kTaskJoined) job.reclaim.told_to_end.erase(event.task);
  if (kind == kLossCounted || kind == kRollsBack) {
    const std::optional<Rollback>& before = job.rollbacks.current();
    job.rollbacks.begin(Rollback{Cause{parse_task_id(event.task), event.cause.empty() ? event.text : event.cause},
                                 before ? before->began : now - age, now, now,
                                 std::max(Step(event.step), before ? before->step : Step()), is_step_known});
  }
  if (kind == kWorkerLost && counts) job.worker_losses.note_lost(event.task, now - age, event.text);
  if (kind == kRolledBack) job.rollbacks.end();
  if (is_running) job.reclaim.told_to_end.clear();
  // The time until the next checkpoint counts from the last checkpoint, however often the chief is restarted.
  if (kind == kCheckpointTaken || (is_running && !job.schedule.has_begun())) job.schedule.begin(now - age);
}

// Takes over the generation from the journal. The job's tasks may still train, so the chief waits for their hellos. If
// the job was in a rollback, the chief rolls it back again.
void take_up_generation(JobFacts& job, Turn& turn, const JournaledJob& journaled) {
  job.workers.take_up(journaled.roster);
  job.generation.take_up(journaled.generation, journaled.roster.members.size());
  job.candidates.take_up(job.workers.all());
  job.loans.take_up(journaled.grants);
  if (const Status status = job.generation.recompute_layout(); !status)
    return fail_job(job, turn, status.error(), std::nullopt);
  job.progress.moved(turn.now);
  job.reclaim.waits_for_workers_until = turn.now + 2 * job.setup.timeouts.silent;
  tell(job, turn, kTakenUp, 1, "a new chief waits for the job's tasks");
  // The chief was restarted during a rollback. The record of the next generation may already be written, and its count
  // includes this rollback. So the count is made smaller here, because roll_back() counts the rollback again.
  if (!journaled.is_training && job.rollbacks.count() > 0) job.rollbacks.set_count(job.rollbacks.count() - 1);
  if (job.rollbacks.current() && !job.condition.is_stopping()) return roll_back(job, turn);
  begin_reclaim(job, turn);
  if (job.setup.takes_checkpoints()) ask_newest(job, turn);
  job.schedule.set_next_due(job.progress.step());
}

void begin_reclaim(JobFacts& job, Turn& turn) {
  job.stage.enter(Stage::kReclaim);
  job.condition.explain("a new chief waits for the job's tasks");
  job.reclaim.workers_until = turn.now + 2 * job.setup.timeouts.silent;
  // The chief waits for a ps for Timeouts::silent_ps, plus the longest pause between two dials. If the chief's host
  // vanished, the old connection still looks open to the ps. Then the ps dials again only when the chief has been
  // silent for five heartbeat timeouts.
  job.stage.set_deadline(turn.now + (DISTTRAIN_MUTANT(kLatePsLost)
                                         ? 2 * job.setup.timeouts.silent
                                         : job.setup.timeouts.silent_ps + job.setup.timeouts.reconnect_longest));
}

// Returns the workers of the roster that the job goes on with, and marks the missing workers as lost.
std::vector<Member> drop_missing_workers(JobFacts& job, Turn& turn) {
  std::vector<Member> members = job.workers.roster().members;
  for (const Member& worker : job.workers.roster().members) {
    if (job.reclaim.is_back(worker)) continue;
    // The worker lives but holds nothing of the generation: when the chief stopped, the order to open the job was lost,
    // or the answer that the worker can't open it.
    const Task* task = turn.tasks.find(worker.task);
    const bool has_other_job = task != nullptr && task->hello.job.value != 0 && task->hello.job != job.setup.id;
    if (turn.tasks.is_current(worker) && task->connected && !has_other_job && task->hello.generation.value == 0 &&
        task->heartbeat.generation.value == 0) {
      job.workers.join_again(worker, turn.now);  // end_reclaim() asks it to open the job
      continue;
    }
    job.workers.mark_lost(worker);
    job.workers.finish(worker);
    job.candidates.unprepare(worker);
    if (!job.setup.waits_for_lost() || job.condition.is_stopping()) std::erase(members, worker);
    if (views::loss_while_away(job, worker.task) == Loss::kLeft)
      tell(job, turn, kWorkerLeft, 1, to_string(worker.task) + " left while the chief was away", worker.task);
    else
      tell(job, turn, kWorkerLost, 2, to_string(worker.task) + " was lost while the chief was away", worker.task);
  }
  return members;
}

// The worker goes on with the job of a former chief, unless a reason to pause is left.
void send_on(JobFacts& job, Turn& turn, const Member& worker) {
  turn.send(worker.task, StartJob{job.setup.id, job.generation.number()});
  turn.send(worker.task, PauseJob{job.setup.id, job.generation.number(), views::holds_workers(job, turn.tasks),
                                  "the chief is back"});
  if (job.condition.is_stopping())
    send_behind_all(job, turn, worker.task, StopJob{job.setup.id, job.generation.number()});
}

}  // namespace

void recall(JobFacts& job, Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks) {
  const Duration window = job.setup.config().job.restart_window;
  bool is_step_known = true;
  for (const EventRecord& event : events) {
    if (event.job != job.setup.id) continue;
    const std::optional<Duration> known_age = age_of(event, clocks);
    const Duration age = known_age.value_or(Duration::zero());
    // A loss of unknown age doesn't count. Otherwise old losses could fail a job after the wall clock was set back.
    recall_one(job, now, event, age, known_age && age <= window, is_step_known);
    // After a restart the chief knows only the steps of checkpoints, until the pacer reports the job's step.
    if (event.kind == kTakenUp) is_step_known = false;
    if (event.kind == kReclaimed || event.kind == kRolledBack) is_step_known = true;
  }
}

void recall_end(JobFacts& job, const EndRecord& end) {
  job.generation.restore_number(end.generation);
  job.progress.recall(end);
  job.condition.recall_blame(end.code, end.root_cause);
}

// If this generation has taken a checkpoint, the job has reached at least the step of that checkpoint. Otherwise it has
// reached at least the step at which the generation began. The chief doesn't use the step of an earlier generation's
// checkpoint: if that checkpoint is damaged, this generation began at an earlier step.
void recall_progress(JobFacts& job, const JournaledJob& journaled) {
  const GenerationRecord& record = journaled.generation;
  const std::optional<CheckpointRecord>& newest = journaled.checkpoint;
  const bool is_of_this = newest && newest->generation == record.generation;
  job.progress.take_up(is_of_this ? newest->step : record.restore_step, record.before);
}

void take_up(JobFacts& job, Turn& turn, const JournaledJob& journaled) {
  const GenerationRecord& record = journaled.generation;
  job.condition.begin();
  job.condition.set(journaled.state, journaled.reason);
  job.folder.newest = journaled.checkpoint;
  job.rollbacks.set_count(record.recoveries);
  take_up_evaluations(job, journaled.evaluations);
  if (journaled.ended) {
    job.rollbacks.end();
    recall_end(job, *journaled.ended);
    return close_job(job, turn, journaled.ended->state, journaled.ended->reason);
  }
  job.condition.note_opened(journaled.is_training || journaled.checkpoint || record.before.time > Duration::zero());
  if (!job.schedule.has_begun()) job.schedule.begin(turn.now);
  if (journaled.described) job.generation.describe(*journaled.described);
  job.generation.restore_number(record.generation);
  recall_progress(job, journaled);
  const std::string early_end = journaled.evaluations ? journaled.evaluations->early_end : "";
  // A client may have stopped the job while it finished early. The reason of the state then isn't that of the early
  // end.
  const bool was_stopped = journaled.state == JobState::kStopping && journaled.reason != early_end;
  const bool finishes_early = !early_end.empty() && journaled.is_training && !job.rollbacks.current();
  if (was_stopped) {
    job.condition.begin_stopping(journaled.reason);
  } else if (finishes_early) {
    job.condition.set(JobState::kStopping, early_end);
    job.condition.begin_stopping(early_end, true);
  } else {
    job.condition.end_for(journaled.reason);
  }
  job.generation.init_from(record.init_path);
  // FindInit also protects the checkpoint at this path from removal.
  if (!record.init_path.empty()) turn.folder_work(job.setup.id, turn.next_ticket(), FindInit{record.init_path});
  if (record.generation.value == 0) job.rollbacks.end();  // no shard was placed yet
  if (job.setup.waits_for_lost()) job.workers.fix_ranks(record.roster.members);
  if (!journaled.is_training && job.condition.is_stopping())
    return close_job(job, turn, JobState::kStopped,
                     job.condition.end_reason() + "; the chief was restarted before the job trained");
  if (!job.generation.described() || (!journaled.is_training && !job.rollbacks.current())) {
    // A new start loses no step, because this generation hasn't trained. The journal may have the state kPaused: the
    // chief may have died after it wrote that a rollback is over, and before it wrote that the new generation trains.
    begin_gathering(job, turn);
    job.generation.forget_description();
    return set_state(job, turn, JobState::kStarting, "the chief was restarted; the job gathers its tasks again");
  }
  take_up_generation(job, turn, journaled);
}

void on_hello(JobFacts& job, Turn& turn, const TaskHello& hello) {
  if (DISTTRAIN_MUTANT(kNoRollbackOfSurvivors))
    for (const Member& member : views::all_members(job))
      if (member.task == hello.member.task) job.reclaim.back.insert(member);
  const std::vector<Member> ps = job.generation.holders();
  const auto was_replaced = [&hello](const Member& owner) {
    return owner.task == hello.member.task && owner.incarnation != hello.member.incarnation;
  };
  if (std::any_of(ps.begin(), ps.end(), was_replaced) && hello.job.value == 0)
    return recover(job, turn, {hello.member.task, "it was restarted while the chief was away"},
                   views::loss_while_away(job, hello.member.task));
  if (hello.job != job.setup.id || hello.generation != job.generation.number() || !views::uses(job, hello.member))
    return;
  if (job.generation.is_owner(hello.member)) {
    if (job.generation.token() == 0) job.generation.learn_token(hello.token);
    if (hello.token == 0 || hello.token != job.generation.token())
      return recover(job, turn,
                     {hello.member.task, "its secret for the job's channels differs from the secret of another ps"});
  }
  job.reclaim.back.insert(hello.member);
  // The fault that kept the ps away may have kept workers away too. They come back at about the same time as the ps, so
  // the wait for workers starts again.
  if (job.generation.is_owner(hello.member)) job.reclaim.workers_until = turn.now + 2 * job.setup.timeouts.silent;
  // Ends the attempts from before the restart of the chief. Otherwise workers that have marked their channels would
  // wait for workers that never got the order to mark.
  if (job.generation.is_owner(hello.member))
    turn.send(hello.member.task, AbandonCheckpoint{job.setup.id, job.generation.number(), turn.term.value << 32});
  if (job.stage.awaits_anyone()) {
    // The task's former connection may have lost the messages of reclaim_job(). end_reclaim() asks a worker that joins
    // to open the job.
    if (job.workers.is_joining(hello.member))
      repeat_to_ps(job, turn, hello.member);
    else
      repeat_in_training(job, turn, hello.member);
  }
  advance_reclaim(job, turn);
}

void advance_reclaim(JobFacts& job, Turn& turn) {
  carry_out(job, turn, rules::reclaimed(job, turn.tasks, turn.now));
}

// The pacer gets a roster of the workers that are back. With its answer, the pacer reports the job's step. In sync this
// roster makes earlier blocks of steps void.
void reclaim_job(JobFacts& job, Turn& turn) {
  const Ticket ticket = change_roster(job, turn, drop_missing_workers(job, turn), std::nullopt);
  job.loans.is_allowed = false;
  for (const Member& worker : job.workers.lost()) fence(job, turn, worker, ticket);
  job.workers.let_evaluate(std::nullopt);
  choose_evaluator(job, turn);
  job.stage.await(turn.now, {job.generation.pacer()}, turn.now + job.setup.answer_limit());
  const bool holds_workers = views::holds_workers(job, turn.tasks);
  // The state is still "starting" if the chief died after it wrote that the generation trains, but before it wrote the
  // new state.
  const bool is_starting = job.condition.state() == JobState::kStarting;
  if (is_starting || (job.condition.state() == JobState::kPaused && !holds_workers))
    set_state(job, turn, holds_workers ? JobState::kPaused : JobState::kRunning, "the chief is back");
  for (const Member& worker : job.workers.unfinished()) send_on(job, turn, worker);
  tell(job, turn, kReclaimed, 1,
       "a new chief goes on with the job, which has " + std::to_string(job.workers.unfinished().size()) +
           " workers and " + std::to_string(job.generation.holders().size()) + " ps");
}

void end_reclaim(JobFacts& job, Turn& turn) {
  job.stage.enter(Stage::kTrain);
  job.stage.await_nobody();
  job.stage.clear_deadline();
  resume_loans(job, turn.term);
  // Grants that were sent before the restart may have been lost. The chief sends them again before new grants, because
  // a worker ignores a lease with a lower number than the newest lease that it has.
  for (const Member& worker : job.workers.unfinished()) grant_again(job, turn, worker);
  for (const auto& [worker, since] : job.workers.joining()) ask_to_open(job, turn, worker);
  request_early(job);
  job.progress.moved(turn.now);
  std::set<Member> borrowers = job.loans.take_former_borrowers();
  for (const Fence& fence : job.fences.all) borrowers.erase(fence.worker);
  for (const Member& borrower : borrowers)
    if (!job.workers.is_in_roster(borrower)) fence(job, turn, borrower, std::nullopt);
  advance_fences(job, turn);
}

void restore(JobFacts& job, const JournaledJob& journaled) {
  job.generation.restore_number(journaled.generation.generation);
  job.rollbacks.set_count(journaled.generation.recoveries);
  job.folder.newest = journaled.checkpoint;
  take_up_evaluations(job, journaled.evaluations);
  if (journaled.ended) {
    // A job with an end record has begun, because a job that ends in the queue gets no end record.
    job.condition.begin();
    recall_end(job, *journaled.ended);
  }
  if (journaled.state == JobState::kQueued) return;
  if (!journaled.ended) recall_progress(job, journaled);
  job.condition.set(journaled.state, journaled.reason);
  job.stage.enter(Stage::kReleased);
  job.condition.note_opened(journaled.state != JobState::kStarting);
}

}  // namespace disttrain::chiefd::flow
