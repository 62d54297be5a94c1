// Repeats unanswered requests to a task that has a new connection. If the task gets a request twice, the second request
// changes nothing.
#include "chiefd/core/job/flow/flow.h"

#include <utility>

#include "chiefd/core/job/roster_order.h"
#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::flow {
namespace {

// Sends the pacer the current roster again. If the roster's record isn't durable yet, does nothing, because the
// roster is sent anyway when the record is durable.
void repeat_roster(JobFacts& job, Turn& turn) {
  give_pacer_time(job, turn);
  if (!job.held.holds<SetRoster>(job.generation.pacer().task))
    turn.send(job.generation.pacer().task,
              roster_order(job.setup, job.stage, job.condition, job.generation, job.workers));
}

}  // namespace

void on_member_reconnect(JobFacts& job, Turn& turn, const TaskHello& hello) {
  const Member& member = hello.member;
  if (job.stage.is(Stage::kReclaim)) return on_hello(job, turn, hello);
  if (job.candidates.is_invited(member)) repeat_invitation(job, turn, member);
  if (!job.stage.is(Stage::kDescribe) && !views::uses(job, member)) return;
  const bool is_awaited = job.stage.awaits(member);
  switch (job.stage.at()) {
    case Stage::kDescribe:
      if (is_awaited) turn.send(member.task, DescribeJob{job.setup.id, job.setup.shared_config()});
      break;
    case Stage::kCreate:
      if (is_awaited) ask_to_create(job, turn, member);
      break;
    case Stage::kOpen:
      if (is_awaited) ask_to_open(job, turn, member);
      break;
    case Stage::kRoster:
    case Stage::kSettle:
      if (is_awaited) repeat_roster(job, turn);
      break;
    case Stage::kTrain:
      repeat_in_training(job, turn, member);
      break;
    case Stage::kFinalCut:
      if (member == job.generation.pacer()) repeat_roster(job, turn);
      break;
    case Stage::kEvaluate:
      if (is_awaited) turn.send(member.task, Evaluate{job.setup.id, job.generation.number()});
      break;
    case Stage::kClose:
      if (is_awaited)
        turn.send(member.task, CloseJob{job.setup.id, job.generation.number(), job.condition.end_reason()});
      break;
    case Stage::kQueued:
    case Stage::kGather:
    case Stage::kFolder:
    case Stage::kInit:
    case Stage::kRegather:
    case Stage::kFind:
    case Stage::kGeneration:
    case Stage::kReclaim:
    case Stage::kReleased:
      break;  // no task owes an answer
  }
  repeat_checkpoint(job, turn, member);
}

void repeat_to_ps(JobFacts& job, Turn& turn, const Member& ps) {
  repeat_fences(job, turn, ps);
  if (ps == job.generation.pacer()) repeat_roster(job, turn);
}

void repeat_in_training(JobFacts& job, Turn& turn, const Member& member) {
  const auto send_to = [&job, &turn, &member](ToTask message) { turn.send(member.task, std::move(message)); };
  repeat_to_ps(job, turn, member);
  if (!job.workers.is_unfinished(member)) return;
  if (job.workers.is_joining(member)) {
    if (!job.held.holds<OpenJob>(member.task)) ask_to_open(job, turn, member);
    return;
  }
  send_to(StartJob{job.setup.id, job.generation.number()});
  send_to(
      PauseJob{job.setup.id, job.generation.number(), views::holds_workers(job, turn.tasks), job.condition.reason()});
  const bool evaluates = job.setup.config().evaluate.every_steps != 0 && !job.setup.uses_evaluators();
  if (job.workers.evaluator() == member && evaluates) send_to(SetEvaluator{job.setup.id, job.generation.number()});
  if (job.condition.is_stopping() || job.workers.was_told_to_stop(member))
    return send_behind_all(job, turn, member.task, StopJob{job.setup.id, job.generation.number()});
  grant_again(job, turn, member);
}

void give_pacer_time(JobFacts& job, Turn& turn) {
  const bool is_asked = job.stage.is(Stage::kSettle) || job.stage.is(Stage::kReclaim);
  if (is_asked && job.stage.awaits(job.generation.pacer())) job.stage.set_deadline(turn.now + job.setup.answer_limit());
}

}  // namespace disttrain::chiefd::flow
