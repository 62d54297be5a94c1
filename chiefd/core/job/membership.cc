#include "chiefd/core/job/membership.h"

#include <algorithm>
#include <set>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "chiefd/core/job/roster_order.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

Membership::Membership(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      held_(parts.held),
      events_(parts.events),
      condition_(parts.condition),
      progress_(parts.progress),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      worker_losses_(parts.worker_losses),
      worker_figures_(parts.worker_figures),
      members_(parts.members),
      reachability_(parts.reachability),
      launch_(parts.launch),
      loans_(parts.loans),
      fences_(parts.fences),
      quorum_(parts.quorum),
      checkpointing_(parts.checkpointing),
      leaving_(parts.leaving),
      training_(parts.training) {}

void Membership::lose(Turn& turn, const Member& worker, const std::string& why, Loss loss) {
  forget_predecessors(worker);
  // A worker that hasn't begun yet is waited for only if it holds a rank.
  const bool is_waited_for =
      setup_.waits_for_lost() && (!workers_.is_joining(worker) || workers_.has_rank(worker.task));
  const bool had_finished = workers_.lose(worker);
  candidates_.unprepare(worker);
  loans_.forget(worker);
  // Drops messages that still wait for their records, because the next process of this task must not get them.
  held_.drop_sends_to(worker.task);
  tell_loss(turn, worker, why, loss);
  // If the process lives, it learns that it was removed, and may come back as another incarnation. If another process
  // has already taken its place, the chief sends nothing.
  if (turn.tasks.is_current(worker))
    turn.send(worker.task,
              CloseJob{setup_.id, generation_.number(), "the job goes on without this task: " + why, true});
  std::vector<Member> others = workers_.roster().members;
  // With job.on_worker_loss = "wait", the roster keeps the lost worker until the next process of its task joins. The
  // job makes no step before that.
  if (is_waited_for && !condition_.is_stopping() && !had_finished)
    fences_.fence(turn, worker, std::nullopt);
  else if (std::erase(others, worker) > 0)
    change_roster(turn, std::move(others), worker);
  choose_evaluator(turn);
  quorum_.check(turn);
  training_.check_end(turn);
}

void Membership::tell_loss(Turn& turn, const Member& worker, const std::string& why, Loss loss) {
  const std::string name = to_string(worker.task);
  const std::string text = "goes on without " + name + ": " + why;
  switch (loss) {
    case Loss::kCounts:
      worker_losses_.note_lost(name, turn.now, why);
      progress_.excuse_loss(turn.now, setup_.config().job.restart_window);
      events_.warn("lost " + name + ": " + why);
      return events_.tell(turn, kWorkerLost, 2, text, worker.task);
    case Loss::kLeft:
      return events_.tell(turn, kWorkerLeft, 1, text, worker.task);
    case Loss::kLink:
      worker_losses_.note_unlinked(worker.task, turn.now);
      return events_.warn(why);
    case Loss::kSpared:
      return;
  }
}

// Only the newest lost incarnation of a task is remembered, because the chief never hears from older ones again.
void Membership::forget_predecessors(const Member& worker) {
  for (const Member& member : workers_.predecessors_of(worker)) {
    if (fences_.is_fencing(member)) continue;
    workers_.forget(member);
    worker_figures_.forget(member);
  }
}

void Membership::change_roster(Turn& turn, std::vector<Member> members, const std::optional<Member>& lost) {
  const Roster& roster = workers_.change(std::move(members));
  const SetRoster order = roster_order(setup_, stage_, condition_, generation_, workers_);
  const Ticket ticket = turn.persist(RosterRecord{setup_.id, generation_.number(), roster});
  if (lost) fences_.fence(turn, *lost, ticket);
  const TaskId pacer = generation_.pacer().task;
  held_.hold(ticket, Send{pacer, order});
  if (DISTTRAIN_MUTANT(kRosterNotDurable)) turn.send(pacer, order);
  // In sync, blocks of steps are lent to one roster. The chief makes the blocks of the new roster from the ledger in
  // the pacer's answer, so it lends nothing until that answer.
  if (setup_.is_sync()) loans_.forbid();
}

void Membership::choose_evaluator(Turn& turn) {
  if (workers_.evaluator() && !workers_.is_lost(*workers_.evaluator())) return;
  if (workers_.unfinished().empty()) return;
  const Member evaluator = *workers_.unfinished().begin();
  workers_.let_evaluate(evaluator);
  if (setup_.config().evaluate.every_steps != 0 && !setup_.uses_evaluators())
    turn.send(evaluator.task, SetEvaluator{setup_.id, generation_.number()});
}

bool Membership::has_work_for(TaskId worker) const {
  if (condition_.is_stopping() || progress_.report().finished) return false;
  if (setup_.config().data.sharding == Sharding::kLease) return !loans_.is_complete();
  // Each worker goes through the whole data set. If an earlier process of the task has finished, the task has no work
  // left.
  return std::none_of(workers_.all().begin(), workers_.all().end(), [this, worker](const Member& member) {
    return member.task == worker && !workers_.is_lost(member);
  });
}

void Membership::join_prepared(Turn& turn) {
  if (!stage_.is(Stage::kTrain) || !loans_.is_allowed() || leaving_.owner(turn.tasks)) return;
  if (checkpointing_.is_cutting()) return;
  for (const Member& worker : std::set(candidates_.prepared())) {
    if (!may_join(turn, worker)) continue;
    join(turn, worker);
    if (!loans_.is_allowed()) return;  // in sync the next worker joins only after the pacer's answer
  }
}

bool Membership::may_join(Turn& turn, const Member& worker) {
  if (members_.uses(worker) || workers_.is_lost(worker) || !turn.tasks.is_current(worker) || !has_work_for(worker.task))
    return false;
  const Task* task = turn.tasks.find(worker.task);
  if (candidates_.is_left_out(*task)) return false;
  if (!task->takes_work() || !reachability_.reaches_owners(worker.task)) return false;
  if (worker_losses_.is_too_often(worker.task, turn.now)) {
    keep_out(turn, worker.task, lost_too_often(worker.task, turn.now));
    return false;
  }
  if (const std::size_t workers = roster_with(worker).size(); workers > generation_.places()) {
    keep_out(turn, worker.task, no_place_for(turn.tasks, workers));
    return false;
  }
  candidates_.let_in(worker.task);
  // A worker that is lost again and again waits longer each time before it joins.
  return !worker_losses_.must_wait(worker.task, task->joined, turn.now);
}

void Membership::keep_out(Turn& turn, TaskId worker, const std::string& why) {
  if (candidates_.keep_out(worker, why)) events_.tell(turn, "worker_refused", 2, to_string(worker) + " " + why, worker);
}

std::string Membership::lost_too_often(TaskId worker, Instant now) const {
  const std::size_t losses = worker_losses_.losses_of(worker, now);
  const std::string why = worker_losses_.why_lost(worker);
  return "can't rejoin the job: it was lost " + std::to_string(losses) + (losses == 1 ? " time" : " times") +
         " within job.restart_window, and job.max_restarts is " + std::to_string(setup_.config().job.max_restarts) +
         (why.empty() ? "" : "; the last loss: " + why);
}

std::string Membership::no_place_for(const Tasks& tasks, std::size_t workers) const {
  const std::string problem = generation_.memory_fit(tasks).why_not(static_cast<std::uint32_t>(workers));
  if (!problem.empty()) return "can't join the job: " + problem;
  return "can't join the job: the shards' memory was made for " + std::to_string(generation_.places()) +
         " workers; submit the job again to train with more";
}

// Returns the roster after this worker has joined. The worker takes the place of the earlier process of its task.
std::vector<Member> Membership::roster_with(const Member& worker) const {
  std::vector<Member> members = workers_.roster().members;
  // A worker that has finished makes no more steps, so the next roster doesn't have it.
  if (setup_.is_sync() && !setup_.waits_for_lost())
    std::erase_if(members, [this](const Member& member) { return !workers_.is_unfinished(member); });
  const auto predecessor = std::find_if(members.begin(), members.end(),
                                        [&worker](const Member& member) { return member.task == worker.task; });
  if (predecessor != members.end())
    *predecessor = worker;
  else
    members.push_back(worker);
  return members;
}

void Membership::join(Turn& turn, const Member& worker) {
  std::vector<Member> members = roster_with(worker);
  workers_.join(worker, turn.now);
  events_.tell(turn, "worker_joined", 1, to_string(worker.task) + " joins", worker.task);
  change_roster(turn, std::move(members), std::nullopt);
  choose_evaluator(turn);
  // The shards refuse the worker's channels until the pacer has the roster. The worker retries until then.
  held_.hold(turn.last_ticket, Send{worker.task, launch_.order_to_open(worker)});
  quorum_.check(turn);
}

}  // namespace disttrain::chiefd
