// The end of a job: the last report, the final evaluation, release; stop, kill and failure. See job.h.
#include <algorithm>
#include <utility>

#include "chiefd/core/job.h"

namespace disttrain::chiefd {

void Job::stop(Turn& turn, const std::string& user) {
  if (is_final(state_) || stage_ == Stage::kClose || stopping_) return;
  const std::string reason = "stopped by " + user;
  if (stage_ == Stage::kQueued) {
    stage_ = Stage::kReleased;
    return set_state(turn, JobState::kStopped, reason);
  }
  // What a job that trains holds is kept first: by the last checkpoint, which may be under way, or when a new chief has
  // heard of its tasks.
  const bool ends_by_itself = stage_ == Stage::kReclaim || stage_ == Stage::kSettle || stage_ == Stage::kFinalCut;
  if (stage_ != Stage::kTrain && !ends_by_itself) {
    const std::string when = stage_ == Stage::kEvaluate ? " during its last evaluation"
                             : recovery_                ? " while it recovered"
                                                        : " before it trained";
    return close(turn, JobState::kStopped, reason + when);
  }
  stopping_ = true;
  end_reason_ = reason;
  if (attempt_ && attempt_->holds) interrupt_attempt(turn, reason);
  const std::string at = reason_;
  set_state(turn, JobState::kStopping, reason);
  if (ends_by_itself)
    reason_ += "; " + at;
  else
    end_steps(turn);
}

// The workers end the step that they are in.
void Job::end_steps(Turn& turn) {
  reason_ = end_reason_ + "; waits for the workers to end their step";
  waits_since_ = turn.now;
  deadline_ = turn.now + std::max(setup_.timeouts.close, config().job.stall_timeout);
  if (is_short_) check_quorum(turn);
  for (const Member& worker : unfinished_) send(turn, worker.task, StopJob{id(), generation_});
  check_end(turn);
}

void Job::kill(Turn& turn, const std::string& user) {
  if (is_final(state_) || stage_ == Stage::kClose) return;
  const std::string reason = "killed by " + user;
  if (stage_ != Stage::kQueued) return close(turn, JobState::kStopped, reason);
  stage_ = Stage::kReleased;
  set_state(turn, JobState::kStopped, reason);
}

void Job::fail(Turn& turn, Error error, std::optional<TaskId> root) {
  if (is_final(state_) || stage_ == Stage::kClose) return;
  suspicions_.clear();
  if (root) root_cause_ = RootCause{*root, error.message};
  if (!opened_) code_ = error.code;
  set_state(turn, JobState::kFailed, to_string(Cause{root, error.message}));
  close(turn, JobState::kFailed, reason_);
}

// A report of the pacer that has all pushes: the one on its last heartbeat may be older.
void Job::on_all_finished(Turn& turn) {
  stage_ = Stage::kSettle;
  is_short_ = false;
  if (attempt_ && attempt_->holds) interrupt_attempt(turn, "the job has all its steps");
  await(turn, {pacer()}, turn.now + answer_limit());
  std::erase_if(roster_.members, [this](const Member& worker) { return lost_.count(worker) != 0; });
  roster_.version = roster_.version.next();
  hold(turn.persist(RosterRecord{id(), generation_, roster_}),
       Send{pacer().task, SetRoster{id(), generation_, roster_}});
}

void Job::evaluate(Turn& turn, Loss loss) {
  if (stopping_) return close(turn, JobState::kStopped, end_reason_);
  if (config().evaluate.files.empty()) return close(turn, JobState::kFinished, "");
  stage_ = Stage::kEvaluate;
  const auto candidate = std::find_if(roster_.members.begin(), roster_.members.end(),
                                      [this](const Member& worker) { return lost_.count(worker) == 0; });
  if (candidate == roster_.members.end())
    return recover(turn, {std::nullopt, "no worker is left for the final evaluation"}, loss);
  set_state(turn, JobState::kEvaluating, to_string(candidate->task) + " evaluates the final parameters");
  await(turn, {*candidate}, turn.now + setup_.timeouts.setup + config().job.stall_timeout);
  send(turn, candidate->task, Evaluate{id(), generation_});
}

void Job::on_evaluated(Turn& turn, const Evaluated& evaluated) {
  progress_at_ = turn.now;
  if (evaluated.stalled_training) evaluation_seconds_ += to_seconds(evaluated.took);
  evaluation_ = EvaluationStatus{evaluated.step,     evaluated.loss,  evaluated.accuracy,
                                 evaluated.examples, evaluated.final, evaluated.parameters_hash};
}

EndRecord Job::end_record(Instant now) const {
  const JobStatus status = this->status(now);
  EndRecord end;
  end.job = id();
  end.state = end_;
  end.reason = end_reason_;
  end.generation = generation_;
  end.step = Step(status.global_step);
  end.steps_target = status.steps_target;
  end.examples = status.examples;
  end.training = before_;
  end.training.time +=
      pacer_report_.training - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(evaluation_seconds_));
  end.training.steps += pacer_report_.measured_steps;
  end.training.examples += pacer_report_.measured_examples;
  end.epochs = status.epoch;
  end.late = status.late;
  end.skipped = status.skipped;
  end.staleness = status.staleness;
  end.loss = loss_;
  end.evaluation = evaluation_;
  end.code = code_;
  end.root_cause = root_cause_;
  return end;
}

void Job::close(Turn& turn, JobState end, const std::string& reason) {
  abandon_attempt(turn, "the job ends");
  // It may be about to be opened, too.
  if (takes_checkpoints() || has_init()) turn.actions.push_back(CloseFolder{id()});
  is_folder_open_ = false;
  find_again_.reset();
  for (const ClientId client : std::exchange(savers_, {}))
    turn.actions.push_back(AnswerClient{client, Refused{ErrorCode::kTemporary, "the job ends"}});
  stage_ = Stage::kClose;
  // Who was waited for doesn't matter any more.
  silent_ps_.clear();
  suspicions_.clear();
  end_ = end;
  end_reason_ = !reason.empty() ? reason : "trained " + std::to_string(pacer_report_.global_step.value) + " steps";
  pacer_report_.global_step = reached();
  recovery_.reset();
  stage_ticket_ = turn.persist(end_record(turn.now));
  is_end_written_ = false;
  journaled_end_ = pacer_report_.global_step;
  awaited_.clear();
  deadline_.reset();
  if (end == JobState::kStopped) set_state(turn, JobState::kStopping, end_reason_);
  // What is still being written and lends records is void.
  for (auto& [ticket, actions] : held_)
    std::erase_if(actions, [](const Action& action) { return std::holds_alternative<Send>(action); });
  held_[stage_ticket_];  // looked at by wait_for_disk()
}

// Its end is durable: a chief that finds tasks which have closed the job knows why. Or the disk hangs for too long.
void Job::begin_closing(Turn& turn) {
  is_end_written_ = true;
  // In good order the workers go first, so that none sees its shards vanish. In bad order nobody waits for anybody.
  const bool in_order = end_ == JobState::kFinished || stopping_;
  std::vector<Member> first;
  for (const Member& member : members())
    (in_order && member.task.role == Role::kPs ? to_close_ : first).push_back(member);
  tell_to_close(turn, first);
  if (awaited_.empty()) finish_closing(turn);
}

void Job::tell_to_close(Turn& turn, std::vector<Member> members) {
  std::erase_if(members,
                [&](const Member& member) { return !turn.tasks.is_current(member) || lost_.count(member) != 0; });
  // Who is silent is told, now or when it says hello, but isn't waited for.
  std::vector<Member> heard = members;
  std::erase_if(heard, [&turn](const Member& member) { return !turn.tasks.find(member.task)->is_there(); });
  await(turn, heard, turn.now + setup_.timeouts.close);
  for (const Member& member : members) send(turn, member.task, CloseJob{id(), generation_, end_reason_});
}

void Job::finish_closing(Turn& turn) {
  if (!to_close_.empty()) {
    tell_to_close(turn, std::exchange(to_close_, {}));
    if (!awaited_.empty()) return;
  }
  stage_ = Stage::kReleased;
  awaited_.clear();
  deadline_.reset();
  // The pacer's last report comes as it closes.
  if (pacer_report_.global_step != journaled_end_) turn.persist(end_record(turn.now));
  if (!is_final(state_)) set_state(turn, end_, end_reason_);
}

}  // namespace disttrain::chiefd
