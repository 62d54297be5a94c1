// A job while it trains: leases, progress, losses. See job.h.
#include <algorithm>

#include "chiefd/core/job.h"

namespace disttrain::chiefd {
namespace {

// A worker that evaluates may make the others wait for longer than a step ever should.
constexpr int kEvaluationPatience = 10;

std::string seconds(Duration duration) {
  return std::to_string(static_cast<long>(to_seconds(duration))) + " s";
}

}  // namespace

void Job::on_heartbeat(Turn& turn, const Member& from, const Heartbeat& heartbeat) {
  if (is_worker(from)) {
    worker_steps_[from] = heartbeat.steps;
    if (setup_.submission.warmup_steps > 0 && pacer_report_.measured_steps > 0)
      warmup_times_.try_emplace(from, heartbeat.phase_times);
  }
  if (owners_.empty() || from != pacer() || !heartbeat.pacer) return;
  note_pacer(turn, *heartbeat.pacer);
}

void Job::note_pacer(Turn& turn, const PacerReport& report) {
  if (report.global_step < pacer_report_.global_step) return;
  if (report.global_step > pacer_report_.global_step) progress_at_ = turn.now;
  pacer_report_ = report;
  lending_.note_pacer(report);
  if (stage_ == Stage::kTrain) lend(turn);
}

void Job::on_lease_request(Turn& turn, const Member& from, const LeaseRequest& request) {
  if (unfinished_.count(from) == 0) return;
  lending_.request(from, request.records_per_second);
  lend(turn);
}

void Job::grant(Turn& turn, const Lending::Loan& loan) {
  const Ticket ticket = turn.persist(GrantRecord{id(), generation_, loan.to, loan.lease});
  const bool is_block = loan.lease.ranks != 0;
  for (std::uint32_t rank = 0; rank < loan.to.size(); ++rank) {
    LeaseGrant grant{id(), generation_, loan.lease, loan.last};
    if (is_block) grant.lease->rank = Rank(rank);
    hold(ticket, Send{loan.to[rank].task, grant, std::nullopt});
  }
}

// The last grant of all never overtakes one that is still being written.
void Job::lend(Turn& turn) {
  const Lending::Loans loans = lending_.lend(roster_.members, unfinished_.size());
  for (const Lending::Loan& loan : loans.loans) grant(turn, loan);
  for (const Member& worker : loans.left_without) {
    Send message{worker.task, LeaseGrant{id(), generation_, std::nullopt, true}, std::nullopt};
    if (held_.empty())
      turn.tasks.send(std::move(message), turn.actions);
    else
      held_.rbegin()->second.push_back(std::move(message));
  }
}

// What is still being written comes by itself.
bool Job::is_being_written(const Member& worker, LeaseId lease) const {
  for (const auto& [ticket, actions] : held_)
    for (const Action& action : actions) {
      const Send* message = std::get_if<Send>(&action);
      const LeaseGrant* grant = message != nullptr ? std::get_if<LeaseGrant>(&message->message) : nullptr;
      if (grant != nullptr && message->task == worker.task && grant->lease && grant->lease->id == lease) return true;
    }
  return false;
}

void Job::grant_again(Turn& turn, const Member& worker) {
  const auto place = std::find(roster_.members.begin(), roster_.members.end(), worker);
  if (place == roster_.members.end()) return;
  const Lending::Held held =
      lending_.held_by(worker, Rank(static_cast<std::uint32_t>(place - roster_.members.begin())));
  for (const Lease& lease : held.leases) {
    if (is_being_written(worker, lease.id)) return;
    send(turn, worker.task, LeaseGrant{id(), generation_, lease, false});
  }
  if (held.last) send(turn, worker.task, LeaseGrant{id(), generation_, std::nullopt, true});
}

void Job::repeat_training_requests(Turn& turn, const Member& member) {
  const auto send_to = [this, &turn, &member](ToTask message) { send(turn, member.task, std::move(message)); };
  // In the order of lose_worker().
  for (const Fence& fence : fences_)
    if (std::any_of(fence.owed.begin(), fence.owed.end(),
                    [&](ShardId shard) { return owners_[shard.value].ps == member; }))
      send_to(FenceWorker{id(), generation_, fence.worker});
  if (member == pacer()) send_to(SetRoster{id(), generation_, roster_});
  if (unfinished_.count(member) == 0) return;
  send_to(StartJob{id(), generation_});
  if (evaluator_ == member && config().evaluate.every_steps != 0) send_to(SetEvaluator{id(), generation_});
  if (stopping_) return send_to(StopJob{id(), generation_});
  grant_again(turn, member);
}

void Job::on_worker_finished(Turn& turn, const Member& from, const WorkerFinished& finished) {
  worker_steps_[from] = finished.steps;
  if (unfinished_.erase(from) == 0) return;
  lending_.forget(from);
  if (unfinished_.empty()) return on_all_finished(turn);
  // A synchronous job that is stopped: the others may be within a step that this one won't take part in.
  if (stopping_ && config().train.mode == Mode::kSync) remove_from_roster(turn, from);
}

void Job::lose_task(Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  if (!uses(member)) return;
  const bool is_silent = finding.what == Finding::What::kSilent;
  if (stage_ == Stage::kClose) {
    if (answered(member)) finish_closing(turn);
    return;
  }
  if (is_owner(member)) {
    if (is_silent && opened_) return pause(turn, finding);
    return fail(turn, Error{ErrorCode::kUnavailable, finding.why}, member.task);
  }
  if (!opened_) return fail(turn, Error{ErrorCode::kUnavailable, finding.why}, member.task);
  if (stage_ == Stage::kTrain) return lose_worker(turn, member, finding.why);
  lost_.insert(member);
  if (stage_ == Stage::kEvaluate && awaited_.count(member) != 0) evaluate(turn);
}

void Job::lose_worker(Turn& turn, const Member& worker, const std::string& why) {
  const bool had_finished = unfinished_.count(worker) == 0;
  const std::size_t living = starters_.size() - lost_.size() - 1;
  if (!stopping_ && !had_finished && (config().train.mode == Mode::kSync || living == 0))
    return fail(turn,
                Error{ErrorCode::kFailed,
                      why + (living == 0 ? "; it was the last worker" : "; a synchronous step needs every worker")},
                worker.task);
  lost_.insert(worker);
  lending_.forget(worker);
  unfinished_.erase(worker);
  warnings_.push_back("lost " + to_string(worker.task) + ": " + why);
  turn.actions.push_back(Note{2, "job " + name() + " goes on without " + to_string(worker.task) + ": " + why});
  if (had_finished) return;
  if (unfinished_.empty() && !stopping_ && lending_.may_lend_again())
    return fail(turn, Error{ErrorCode::kFailed, why + "; its records can't be lent again: all others have finished"},
                worker.task);
  if (unfinished_.empty()) return on_all_finished(turn);
  // Before the roster, so that the ledger in the answer to the roster has all that the worker ever got applied.
  Fence fence{worker, {}, {}, false, turn.now + setup_.timeouts.silent_ps};
  std::set<TaskId> told;
  for (std::uint32_t s = 0; s < owners_.size(); ++s) {
    fence.owed.insert(ShardId(s));
    if (told.insert(owners_[s].ps.task).second) send(turn, owners_[s].ps.task, FenceWorker{id(), generation_, worker});
  }
  remove_from_roster(turn, worker);
  fence.roster = roster_.version;
  fences_.push_back(std::move(fence));
}

void Job::remove_from_roster(Turn& turn, const Member& worker) {
  std::erase(roster_.members, worker);
  roster_.version = roster_.version.next();
  send(turn, pacer().task, SetRoster{id(), generation_, roster_});
  if (evaluator_ != worker) return;
  evaluator_ = *unfinished_.begin();
  if (config().evaluate.every_steps != 0) send(turn, evaluator_->task, SetEvaluator{id(), generation_});
}

void Job::advance_fences(Turn& turn) {
  const std::size_t before = fences_.size();
  for (const Fence& fence : fences_)
    if (fence.owed.empty() && fence.roster_applied) lending_.give_back(fence.worker);
  std::erase_if(fences_, [](const Fence& fence) { return fence.owed.empty() && fence.roster_applied; });
  if (fences_.size() != before && stage_ == Stage::kTrain) lend(turn);
}

void Job::pause(Turn& turn, const Finding& finding) {
  silent_ps_.emplace(finding.member.task, turn.now);
  set_state(turn, JobState::kPaused,
            to_string(finding.member.task) + ": " + finding.why + "; waiting for it to return");
}

void Job::resume(Turn& turn) {
  progress_at_ = turn.now;
  if (state_ != JobState::kPaused) return;
  if (stage_ == Stage::kTrain && !stopping_) return set_state(turn, JobState::kRunning, "all ps tasks are back");
  set_state(turn, stopping_ ? JobState::kStopping : JobState::kEvaluating, "all ps tasks are back");
}

void Job::check_stall(Turn& turn) {
  if (!silent_ps_.empty()) return;
  for (const Fence& fence : fences_) {
    if (turn.now < fence.deadline) continue;
    const Member& debtor = fence.owed.empty() ? pacer() : owners_[fence.owed.begin()->value].ps;
    return fail(turn,
                Error{ErrorCode::kFailed, "it heartbeats, but didn't fence " + to_string(fence.worker.task) +
                                              " within " + seconds(setup_.timeouts.silent_ps)},
                debtor.task);
  }
  const bool evaluates = std::any_of(unfinished_.begin(), unfinished_.end(), [&turn](const Member& worker) {
    const Task* task = turn.tasks.find(worker.task);
    return task != nullptr && task->heartbeat.phase == Phase::kEvaluate;
  });
  const Duration patience = config().job.stall_timeout * (evaluates ? kEvaluationPatience : 1);
  if (stopping_ || turn.now - progress_at_ <= patience) return;
  const RootCause cause = who_is_waited_for(turn.tasks);
  fail(turn,
       Error{ErrorCode::kFailed, "no step for " + seconds(patience) + " at step " +
                                     std::to_string(pacer_report_.global_step.value) + ": " + cause.reason},
       cause.task);
}

// Who is in a phase of its own (input, compute) longest holds the others up; if all wait for an answer, the ps tasks
// do.
RootCause Job::who_is_waited_for(const Tasks& tasks) const {
  std::string phases;
  const Task* slowest = nullptr;
  for (const Member& worker : unfinished_) {
    const Task* task = tasks.find(worker.task);
    const Heartbeat& heartbeat = task->heartbeat;
    phases += (phases.empty() ? "" : ", ") + to_string(worker.task) + " is in " + to_string(heartbeat.phase) + " for " +
              seconds(heartbeat.in_phase);
    const bool works = heartbeat.phase == Phase::kInput || heartbeat.phase == Phase::kCompute ||
                       heartbeat.phase == Phase::kEvaluate || heartbeat.phase == Phase::kIdle;
    if (works && (slowest == nullptr || heartbeat.in_phase > slowest->heartbeat.in_phase)) slowest = task;
  }
  return RootCause{slowest != nullptr ? slowest->member.task : pacer().task, phases};
}

}  // namespace disttrain::chiefd
