#include "chiefd/core/job/closing.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

Closing::Closing(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      held_(parts.held),
      condition_(parts.condition),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      pauses_(parts.pauses),
      members_(parts.members),
      suspicions_(parts.suspicions),
      folder_(parts.folder),
      savers_(parts.savers),
      checkpointing_(parts.checkpointing),
      evaluators_(parts.evaluators),
      report_(parts.report) {}

void Closing::close(Turn& turn, JobState end, const std::string& reason) {
  checkpointing_.abandon(turn, "the job ends");
  evaluators_.keep_last(turn);
  folder_.close(turn);
  savers_.refuse(turn, ErrorCode::kTemporary, "the job ends");
  stage_.enter(Stage::kClose);
  pauses_.forget_silent();
  suspicions_.clear();
  end_ = end;
  condition_.end_for(!reason.empty() ? reason : "trained " + std::to_string(progress_.step().value) + " steps");
  progress_.end_at(report_.reached());
  rollbacks_.end();
  stage_.set_ticket(turn.persist(end_record(turn.now)));
  is_end_written_ = false;
  journaled_step_ = progress_.step();
  stage_.await_nobody();
  stage_.clear_deadline();
  if (end == JobState::kStopped) condition_.set(turn, JobState::kStopping, condition_.end_reason());
  // Drops the messages that still wait for their journal records, such as lease grants: the job has ended.
  held_.drop_sends();
  held_.watch(stage_.ticket());
}

void Closing::begin(Turn& turn) {
  is_end_written_ = true;
  evaluators_.close(turn);
  // After a normal end the workers close before the ps tasks, so that no worker loses a shard that it still uses. After
  // a failure or a kill all tasks close at once.
  const bool in_order = end_ == JobState::kFinished || condition_.is_stopping();
  std::vector<Member> first;
  for (const Member& member : members_.all())
    (in_order && member.task.role == Role::kPs ? to_close_ : first).push_back(member);
  tell_to_close(turn, first);
  if (!stage_.awaits_anyone()) finish(turn);
}

void Closing::tell_to_close(Turn& turn, std::vector<Member> members) {
  std::erase_if(members,
                [&](const Member& member) { return !turn.tasks.is_current(member) || workers_.is_lost(member); });
  // A silent task is told too, but the job doesn't wait for its answer. If the message is lost, the chief tells the
  // task at its first hello after the job is released.
  std::vector<Member> heard = members;
  std::erase_if(heard, [&turn](const Member& member) { return !turn.tasks.find(member.task)->is_there(); });
  stage_.await(turn.now, heard, turn.now + setup_.timeouts.close);
  for (const Member& member : members)
    turn.send(member.task, CloseJob{setup_.id, generation_.number(), condition_.end_reason()});
}

void Closing::finish(Turn& turn) {
  if (!to_close_.empty()) {
    tell_to_close(turn, std::exchange(to_close_, {}));
    if (stage_.awaits_anyone()) return;
  }
  stage_.enter(Stage::kReleased);
  stage_.await_nobody();
  stage_.clear_deadline();
  // The pacer sends its last report while it closes the job. If that report has a newer step, the end is journaled
  // again.
  if (progress_.step() != journaled_step_) turn.persist(end_record(turn.now));
  if (!condition_.has_ended()) condition_.set(turn, end_, condition_.end_reason());
}

bool Closing::lets_go(const Member& member) const {
  return is_end_written_ && !stage_.awaits(member) &&
         std::find(to_close_.begin(), to_close_.end(), member) == to_close_.end();
}

EndRecord Closing::end_record(Instant now) const {
  const JobStatus status = report_.status(now);
  EndRecord end;
  end.job = setup_.id;
  end.state = end_;
  end.reason = condition_.end_reason();
  end.generation = status.generation;
  end.step = Step(status.global_step);
  end.steps_target = status.steps_target;
  end.examples = status.examples;
  end.training = progress_.training();
  end.epochs = status.epoch;
  end.late = status.late;
  end.skipped = status.skipped;
  end.staleness = status.staleness;
  end.loss = status.loss;
  end.metrics = status.metrics;
  end.evaluation = status.evaluation;
  end.code = status.code;
  end.root_cause = status.root_cause;
  return end;
}

}  // namespace disttrain::chiefd
