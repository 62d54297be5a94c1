#include "chiefd/core/job/requests.h"

#include "chiefd/core/job/parts.h"
#include "chiefd/core/job/roster_order.h"

namespace disttrain::chiefd {

Requests::Requests(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      held_(parts.held),
      condition_(parts.condition),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      members_(parts.members),
      launch_(parts.launch),
      loans_(parts.loans),
      fences_(parts.fences),
      invitations_(parts.invitations),
      pausing_(parts.pausing),
      reclaim_(parts.reclaim),
      checkpointing_(parts.checkpointing) {}

void Requests::on_reconnect(Turn& turn, const TaskHello& hello) {
  const Member& member = hello.member;
  if (stage_.is(Stage::kReclaim)) return reclaim_.on_hello(turn, hello);
  if (candidates_.is_invited(member)) invitations_.repeat(turn, member);
  if (!stage_.is(Stage::kDescribe) && !members_.uses(member)) return;
  const bool is_awaited = stage_.awaits(member);
  switch (stage_.at()) {
    case Stage::kDescribe:
      if (is_awaited) turn.send(member.task, DescribeJob{setup_.id, setup_.shared_config()});
      break;
    case Stage::kCreate:
      if (is_awaited) launch_.ask_to_create(turn, member);
      break;
    case Stage::kOpen:
      if (is_awaited) launch_.ask_to_open(turn, member);
      break;
    case Stage::kRoster:
    case Stage::kSettle:
      if (is_awaited) repeat_roster(turn);
      break;
    case Stage::kTrain:
      repeat_in_training(turn, member);
      break;
    case Stage::kFinalCut:
      if (member == generation_.pacer()) repeat_roster(turn);
      break;
    case Stage::kEvaluate:
      if (is_awaited) turn.send(member.task, Evaluate{setup_.id, generation_.number()});
      break;
    case Stage::kClose:
      if (is_awaited) turn.send(member.task, CloseJob{setup_.id, generation_.number(), condition_.end_reason()});
      break;
    default:
      break;
  }
  checkpointing_.repeat(turn, member);
}

void Requests::repeat_to_ps(Turn& turn, const Member& ps) {
  fences_.repeat(turn, ps);
  if (ps == generation_.pacer()) repeat_roster(turn);
}

void Requests::repeat_in_training(Turn& turn, const Member& member) {
  const auto send_to = [this, &turn, &member](ToTask message) { turn.send(member.task, std::move(message)); };
  repeat_to_ps(turn, member);
  if (!workers_.is_unfinished(member)) return;
  if (workers_.is_joining(member)) {
    if (!held_.holds<OpenJob>(member.task)) launch_.ask_to_open(turn, member);
    return;
  }
  send_to(StartJob{setup_.id, generation_.number()});
  send_to(PauseJob{setup_.id, generation_.number(), pausing_.holds_workers(turn.tasks), condition_.reason()});
  const bool evaluates = setup_.config().evaluate.every_steps != 0 && !setup_.uses_evaluators();
  if (workers_.evaluator() == member && evaluates) send_to(SetEvaluator{setup_.id, generation_.number()});
  if (condition_.is_stopping() || workers_.was_told_to_stop(member))
    return held_.send_behind_all(turn, member.task, StopJob{setup_.id, generation_.number()});
  loans_.grant_again(turn, member);
}

void Requests::repeat_roster(Turn& turn) {
  give_pacer_time(turn);
  if (!held_.holds<SetRoster>(generation_.pacer().task))
    turn.send(generation_.pacer().task, roster_order(setup_, stage_, condition_, generation_, workers_));
}

void Requests::give_pacer_time(Turn& turn) {
  const bool is_asked = stage_.is(Stage::kSettle) || stage_.is(Stage::kReclaim);
  if (is_asked && stage_.awaits(generation_.pacer())) stage_.set_deadline(turn.now + setup_.answer_limit());
}

}  // namespace disttrain::chiefd
