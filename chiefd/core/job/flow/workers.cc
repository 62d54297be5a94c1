// Workers leave and join while a job trains. Each change makes the next roster.
#include "chiefd/core/job/flow/flow.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/roster_order.h"
#include "chiefd/core/job/rules/workers.h"
#include "chiefd/core/job/views/end.h"
#include "chiefd/core/job/views/links.h"
#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/orders.h"
#include "chiefd/core/job/views/workers.h"
#include "common/mutant.h"

namespace disttrain::chiefd::flow {
namespace {

// Only the newest lost incarnation of a task is remembered, because the chief never hears from older ones again.
void forget_predecessors(JobFacts& job, const Member& worker) {
  for (const Member& member : job.workers.predecessors_of(worker)) {
    if (job.fences.is_fencing(member)) continue;
    job.workers.forget(member);
    job.worker_figures.forget(member);
  }
}

}  // namespace

void lose_worker(JobFacts& job, Turn& turn, const Member& worker, const std::string& why, Loss loss) {
  forget_predecessors(job, worker);
  // A worker that hasn't begun yet is waited for only if it holds a rank.
  const bool is_waited_for =
      job.setup.waits_for_lost() && (!job.workers.is_joining(worker) || job.workers.has_rank(worker.task));
  const bool had_finished = job.workers.lose(worker);
  job.candidates.unprepare(worker);
  job.loans.forget(worker);
  // Drops messages that still wait for their records, because the next process of this task must not get them.
  job.held.drop_sends_to(worker.task);
  tell_loss(job, turn, worker, why, loss);
  // If the process lives, it learns that it was removed, and may come back as another incarnation. If another process
  // has already taken its place, the chief sends nothing.
  if (turn.tasks.is_current(worker))
    turn.send(worker.task,
              CloseJob{job.setup.id, job.generation.number(), "the job goes on without this task: " + why, true});
  std::vector<Member> others = job.workers.roster().members;
  // With job.on_worker_loss = "wait", the roster keeps the lost worker until the next process of its task joins. The
  // job makes no step before that.
  if (is_waited_for && !job.condition.is_stopping() && !had_finished)
    fence(job, turn, worker, std::nullopt);
  else if (std::erase(others, worker) > 0)
    change_roster(job, turn, std::move(others), worker);
  choose_evaluator(job, turn);
  check_quorum(job, turn);
  check_end(job, turn);
}

void tell_loss(JobFacts& job, Turn& turn, const Member& worker, const std::string& why, Loss loss) {
  const std::string name = to_string(worker.task);
  const std::string text = "goes on without " + name + ": " + why;
  switch (loss) {
    case Loss::kCounts:
      job.worker_losses.note_lost(name, turn.now, why);
      job.progress.excuse_loss(turn.now, job.setup.config().job.restart_window);
      job.warnings.add("lost " + name + ": " + why);
      return tell(job, turn, kWorkerLost, 2, text, worker.task);
    case Loss::kLeft:
      return tell(job, turn, kWorkerLeft, 1, text, worker.task);
    case Loss::kLink:
      job.worker_losses.note_unlinked(worker.task, turn.now);
      return job.warnings.add(why);
    case Loss::kSpared:
      return;
  }
}

Ticket change_roster(JobFacts& job, Turn& turn, std::vector<Member> members, const std::optional<Member>& lost) {
  const Roster& roster = job.workers.change(std::move(members));
  const SetRoster order = roster_order(job.setup, job.stage, job.condition, job.generation, job.workers);
  const Ticket ticket = turn.persist(RosterRecord{job.setup.id, job.generation.number(), roster});
  if (lost) fence(job, turn, *lost, ticket);
  const TaskId pacer = job.generation.pacer().task;
  job.held.hold(ticket, Send{pacer, order});
  if (DISTTRAIN_MUTANT(kRosterNotDurable)) turn.send(pacer, order);
  // In sync, blocks of steps are lent to one roster. The chief makes the blocks of the new roster from the ledger in
  // the pacer's answer, so it lends nothing until that answer.
  if (job.setup.is_sync()) job.loans.is_allowed = false;
  return ticket;
}

void choose_evaluator(JobFacts& job, Turn& turn) {
  if (job.workers.evaluator() && !job.workers.is_lost(*job.workers.evaluator())) return;
  if (job.workers.unfinished().empty()) return;
  const Member evaluator = *job.workers.unfinished().begin();
  job.workers.let_evaluate(evaluator);
  if (job.setup.config().evaluate.every_steps != 0 && !job.setup.uses_evaluators())
    turn.send(evaluator.task, SetEvaluator{job.setup.id, job.generation.number()});
}

void join_prepared(JobFacts& job, Turn& turn) {
  if (!job.stage.is(Stage::kTrain) || !job.loans.is_allowed || views::leaving_owner(job, turn.tasks)) return;
  if (job.attempts.is_cutting()) return;
  for (const Member& worker : std::set(job.candidates.prepared())) {
    carry_out(job, turn, rules::joins(job, turn.tasks, turn.now, worker));
    if (!job.loans.is_allowed) return;  // in sync the next worker joins only after the pacer's answer
  }
}

void join(JobFacts& job, Turn& turn, const Member& worker) {
  std::vector<Member> members = views::roster_with(job, worker);
  job.workers.join(worker, turn.now);
  tell(job, turn, "worker_joined", 1, to_string(worker.task) + " joins", worker.task);
  const Ticket ticket = change_roster(job, turn, std::move(members), std::nullopt);
  choose_evaluator(job, turn);
  // The shards refuse the worker's channels until the pacer has the roster. The worker retries until then.
  job.held.hold(ticket, Send{worker.task, views::order_to_open(job, worker)});
  check_quorum(job, turn);
}

void keep_out(JobFacts& job, Turn& turn, TaskId worker, const std::string& why) {
  if (job.candidates.keep_out(worker, why)) tell(job, turn, "worker_refused", 2, to_string(worker) + " " + why, worker);
}

void check_quorum(JobFacts& job, Turn& turn) {
  carry_out(job, turn, rules::quorum(job, turn.tasks, turn.now));
}

}  // namespace disttrain::chiefd::flow
