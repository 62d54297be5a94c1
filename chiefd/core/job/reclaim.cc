#include "chiefd/core/job/reclaim.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

Reclaim::Reclaim(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      held_(parts.held),
      events_(parts.events),
      condition_(parts.condition),
      progress_(parts.progress),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      members_(parts.members),
      launch_(parts.launch),
      loans_(parts.loans),
      fences_(parts.fences),
      requests_(parts.requests),
      membership_(parts.membership),
      pausing_(parts.pausing),
      recovery_(parts.recovery) {}

void Reclaim::begin(Turn& turn) {
  stage_.enter(Stage::kReclaim);
  condition_.explain("a new chief waits for the job's tasks");
  workers_until_ = turn.now + 2 * setup_.timeouts.silent;
  // The chief waits for a ps for Timeouts::silent_ps, plus the longest pause between two dials. If the chief's host
  // vanished, the old connection still looks open to the ps. Then the ps dials again only when the chief has been
  // silent for five heartbeat timeouts.
  stage_.set_deadline(turn.now + (DISTTRAIN_MUTANT(kLatePsLost)
                                      ? 2 * setup_.timeouts.silent
                                      : setup_.timeouts.silent_ps + setup_.timeouts.reconnect_longest));
}

Loss Reclaim::loss_of(TaskId task) const {
  return told_to_end_.count(to_string(task)) == 0 ? Loss::kCounts : Loss::kLeft;
}

void Reclaim::on_hello(Turn& turn, const TaskHello& hello) {
  if (DISTTRAIN_MUTANT(kNoRollbackOfSurvivors))
    for (const Member& member : members_.all())
      if (member.task == hello.member.task) reclaimed_.insert(member);
  const std::vector<Member> ps = generation_.holders();
  const auto was_replaced = [&hello](const Member& owner) {
    return owner.task == hello.member.task && owner.incarnation != hello.member.incarnation;
  };
  if (std::any_of(ps.begin(), ps.end(), was_replaced) && hello.job.value == 0)
    return recovery_.recover(turn, {hello.member.task, "it was restarted while the chief was away"},
                             loss_of(hello.member.task));
  if (hello.job != setup_.id || hello.generation != generation_.number() || !members_.uses(hello.member)) return;
  if (generation_.is_owner(hello.member)) {
    if (generation_.token() == 0) generation_.learn_token(hello.token);
    if (hello.token == 0 || hello.token != generation_.token())
      return recovery_.recover(
          turn, {hello.member.task, "its secret for the job's channels differs from the secret of another ps"});
  }
  reclaimed_.insert(hello.member);
  // The fault that kept the ps away may have kept workers away too. They come back at about the same time as the ps, so
  // the wait for workers starts again.
  if (generation_.is_owner(hello.member)) workers_until_ = turn.now + 2 * setup_.timeouts.silent;
  // Ends the attempts from before the restart of the chief. Otherwise workers that have marked their channels would
  // wait for workers that never got the order to mark.
  if (generation_.is_owner(hello.member))
    turn.send(hello.member.task, AbandonCheckpoint{setup_.id, generation_.number(), turn.term.value << 32});
  if (stage_.awaits_anyone()) requests_.repeat_to_ps(turn, hello.member);
  advance(turn);
}

void Reclaim::advance(Turn& turn) {
  const std::vector<Member> ps = generation_.holders();
  const bool has_all_ps = std::all_of(ps.begin(), ps.end(), [this](const Member& member) { return is_back(member); });
  const bool has_all = has_all_ps && std::all_of(workers_.all().begin(), workers_.all().end(),
                                                 [this](const Member& member) { return is_back(member); });
  if (stage_.awaits_anyone()) return check_pacer(turn);
  // Deadlines::check() removes a deadline that has passed. So if there is no deadline, the time is up too.
  const bool is_ps_time_up = !stage_.deadline() || turn.now >= *stage_.deadline();
  if (!has_all && (has_all_ps ? turn.now < workers_until_ : !is_ps_time_up)) return;
  for (const Member& member : ps)
    if (!is_back(member))
      return recovery_.recover(turn, {member.task, "it was lost while the chief was away"}, loss_of(member.task));
  go_on(turn);
}

// Called while the chief waits for the pacer to report the job's step. While the chief and the pacer don't hear each
// other, the pacer gets more time.
void Reclaim::check_pacer(Turn& turn) {
  const Member& pacer = generation_.pacer();
  if (!turn.tasks.hears_both_ways(pacer)) stage_.set_deadline(turn.now + setup_.answer_limit());
  if (turn.now < *stage_.deadline()) return;
  recovery_.recover(turn, {pacer.task, "it heartbeats, but didn't report the job's step in time"});
}

// Called when all ps tasks are back. Sends the pacer a roster of the workers that are back. With its answer, the pacer
// reports the job's step. In sync this roster makes earlier blocks of steps void.
void Reclaim::go_on(Turn& turn) {
  membership_.change_roster(turn, drop_missing_workers(turn), std::nullopt);
  loans_.forbid();
  const Ticket ticket = turn.last_ticket;
  for (const Member& worker : workers_.lost()) fences_.fence(turn, worker, ticket);
  workers_.let_evaluate(std::nullopt);
  membership_.choose_evaluator(turn);
  stage_.await(turn.now, {generation_.pacer()}, turn.now + setup_.answer_limit());
  const bool holds_workers = pausing_.holds_workers(turn.tasks);
  // The state is still "starting" if the chief died after it wrote that the generation trains, but before it wrote the
  // new state.
  const bool is_starting = condition_.state() == JobState::kStarting;
  if (is_starting || (condition_.state() == JobState::kPaused && !holds_workers))
    condition_.set(turn, holds_workers ? JobState::kPaused : JobState::kRunning, "the chief is back");
  for (const Member& worker : workers_.unfinished()) {
    turn.send(worker.task, StartJob{setup_.id, generation_.number()});
    turn.send(worker.task, PauseJob{setup_.id, generation_.number(), holds_workers, "the chief is back"});
    if (condition_.is_stopping()) held_.send_behind_all(turn, worker.task, StopJob{setup_.id, generation_.number()});
  }
  events_.tell(turn, kReclaimed, 1,
               "a new chief goes on with the job, which has " + std::to_string(workers_.unfinished().size()) +
                   " workers and " + std::to_string(generation_.holders().size()) + " ps");
}

// Returns the workers of the roster that the job goes on with, and marks the missing workers as lost.
std::vector<Member> Reclaim::drop_missing_workers(Turn& turn) {
  std::vector<Member> members = workers_.roster().members;
  for (const Member& worker : workers_.roster().members) {
    if (is_back(worker)) continue;
    // The worker lives but holds nothing of the generation: when the chief stopped, the order to open the job was lost,
    // or the answer that the worker can't open it.
    const Task* task = turn.tasks.find(worker.task);
    const bool has_other_job = task != nullptr && task->hello.job.value != 0 && task->hello.job != setup_.id;
    if (turn.tasks.is_current(worker) && task->connected && !has_other_job && task->hello.generation.value == 0 &&
        task->heartbeat.generation.value == 0) {
      workers_.join_again(worker, turn.now);  // on_pacer_answer() asks it to open the job
      continue;
    }
    workers_.mark_lost(worker);
    workers_.finish(worker);
    candidates_.unprepare(worker);
    if (!setup_.waits_for_lost()) std::erase(members, worker);
    if (loss_of(worker.task) == Loss::kLeft)
      events_.tell(turn, kWorkerLeft, 1, to_string(worker.task) + " left while the chief was away", worker.task);
    else
      events_.tell(turn, kWorkerLost, 2, to_string(worker.task) + " was lost while the chief was away", worker.task);
  }
  return members;
}

void Reclaim::on_pacer_answer(Turn& turn) {
  stage_.enter(Stage::kTrain);
  stage_.await_nobody();
  stage_.clear_deadline();
  loans_.resume(turn.term);
  // Grants that were sent before the restart may have been lost. The chief sends them again before new grants, because
  // a worker ignores a lease with a lower number than the newest lease that it has.
  for (const Member& worker : workers_.unfinished()) loans_.grant_again(turn, worker);
  for (const auto& [worker, since] : workers_.joining()) launch_.ask_to_open(turn, worker);
  loans_.request_early();
  progress_.moved(turn.now);
  std::set<Member> borrowers = loans_.take_former_borrowers();
  for (const Fences::Fence& fence : fences_.all()) borrowers.erase(fence.worker);
  for (const Member& borrower : borrowers)
    if (!workers_.is_in_roster(borrower)) fences_.fence(turn, borrower, std::nullopt);
  fences_.advance(turn);
}

}  // namespace disttrain::chiefd
