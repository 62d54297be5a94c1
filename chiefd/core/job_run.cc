// A job while it trains: leases, progress, its end. See job.h.
#include <algorithm>

#include "chiefd/core/job.h"

#include "common/mutant.h"

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
  if (report.global_step > furthest_) {
    furthest_ = report.global_step;
    fruitless_ = 0;
  }
  // To a new chief the first report is no news, and neither is what a pacer still holds after a loss.
  if (examples_reported_ && report.examples > *examples_reported_)
    examples_heard_ += report.examples - *examples_reported_;
  examples_reported_ = report.examples;
  pacer_report_ = report;
  heard_pacer_ = true;
  // Before its first step a shard knows of none.
  if (report.global_step > (restore_ ? restore_->step : Step())) loss_ = report.loss;
  lending_.note_pacer(report);
  if (stage_ != Stage::kTrain) return;
  lend(turn);
  check_end(turn);
  if (stage_ == Stage::kTrain) advance_attempt(turn);
}

void Job::on_roster_applied(Turn& turn, const RosterApplied& applied) {
  note_pacer(turn, applied.pacer);
  for (Fence& fence : fences_)
    if (fence.roster <= applied.version) fence.roster_applied = true;
  advance_fences(turn);
  if (applied.version != roster_.version) return;
  if (stage_ == Stage::kRoster && answered(pacer())) return start_training(turn);
  if (stage_ == Stage::kSettle && answered(pacer())) return final_cut(turn);
  // An answer to the chief before may still be under way: the tasks aren't together yet.
  const bool is_reclaimed = stage_ == Stage::kReclaim && awaited_.count(pacer()) != 0;
  if ((stage_ != Stage::kTrain && !is_reclaimed) || may_lend_) return;
  // The open step begins anew with this roster: what it takes is what the ledger lacks now.
  may_lend_ = true;
  if (stage_ == Stage::kReclaim) {
    stage_ = Stage::kTrain;
    awaited_.clear();
    deadline_.reset();
    lending_ = Lending(config(), described_->train_records, roster_, pacer_report_, LeaseId(turn.term.value << 32),
                       reclaimed_grants_);
    // What the chief before lent may have been lost with its connections. Before anything newer: workers go by the
    // leases' numbers.
    for (const Member& worker : unfinished_) grant_again(turn, worker);
    for (const auto& [worker, since] : joining_) ask_to_open(turn, worker);
    for (const auto& [worker, rate] : std::exchange(early_requests_, {}))
      if (unfinished_.count(worker) != 0) lending_.request(worker, rate);
    progress_at_ = turn.now;
    std::set<Member> borrowers;
    for (const auto& [lease, grant] : std::exchange(reclaimed_grants_, {})) borrowers.insert(grant.borrowers.front());
    for (const Fence& fence : fences_) borrowers.erase(fence.worker);
    for (const Member& borrower : borrowers)
      if (!is_in_roster(borrower)) fence(turn, borrower, std::nullopt);
    advance_fences(turn);
  } else {
    lending_.change_roster(roster_, pacer_report_);
  }
  lend(turn);
  check_quorum(turn);
  invite_all(turn);
  // Asked for while the chief before, or nobody, could carry it out.
  if (stopping_ && stage_ == Stage::kTrain && !deadline_) return end_steps(turn);
  check_end(turn);
}

void Job::on_lease_request(Turn& turn, const Member& from, const LeaseRequest& request) {
  if (unfinished_.count(from) == 0) return;
  if (!may_lend_) {
    early_requests_[from] = request.records_per_second;
    return;
  }
  lending_.request(from, request.records_per_second);
  lend(turn);
  // It may have missed that nothing follows.
  if (is_sync()) grant_again(turn, from);
}

// Leases are durable before they are sent: a later chief must know what workers hold. Blocks of steps are void with
// their roster, and a later chief makes a new one.
void Job::grant(Turn& turn, const Lending::Loan& loan) {
  if (loan.lease.ranks == 0) {
    const Ticket ticket = turn.persist(GrantRecord{id(), generation_, loan.to, loan.lease});
    if (DISTTRAIN_MUTANT(kGrantNotDurable))
      return send(turn, loan.to.front().task, LeaseGrant{id(), generation_, loan.lease, loan.last, {}});
    return hold(ticket, Send{loan.to.front().task, LeaseGrant{id(), generation_, loan.lease, loan.last, {}}});
  }
  for (std::uint32_t rank = 0; rank < loan.to.size(); ++rank) {
    if (lost_.count(loan.to[rank]) != 0) continue;
    LeaseGrant grant{id(), generation_, loan.lease, loan.last, loan.lease.roster};
    grant.lease->rank = Rank(rank);
    send(turn, loan.to[rank].task, grant);
  }
}

// The last grant of all never overtakes one that is still being written.
void Job::lend(Turn& turn) {
  if (!may_lend_) return;
  const Lending::Loans loans = lending_.lend(roster_.members, unfinished_.size());
  for (const Lending::Loan& loan : loans.loans) grant(turn, loan);
  if (!is_sync()) {
    constexpr std::uint64_t kGrantsUnswept = 1000;
    grants_written_ += loans.loans.size();
    if (grants_written_ > kGrantsUnswept) {
      grants_written_ = 0;
      turn.persist(OpenGrantsRecord{id(), generation_, lending_.open_leases()});
    }
  }
  for (const Member& worker : loans.left_without) {
    Send message{worker.task, LeaseGrant{id(), generation_, std::nullopt, true, roster_.version}};
    if (held_.empty() || is_sync())
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
  if (!may_lend_) return;
  const auto place = std::find(roster_.members.begin(), roster_.members.end(), worker);
  if (place == roster_.members.end()) return;
  const Lending::Held held =
      lending_.held_by(worker, Rank(static_cast<std::uint32_t>(place - roster_.members.begin())));
  for (const Lease& lease : held.leases) {
    if (is_being_written(worker, lease.id)) return;
    send(turn, worker.task, LeaseGrant{id(), generation_, lease, false, roster_.version});
  }
  if (held.last) send(turn, worker.task, LeaseGrant{id(), generation_, std::nullopt, true, roster_.version});
}

// What waits for its record comes by itself.
template <typename Message>
bool Job::is_held_for(TaskId task) const {
  for (const auto& [ticket, actions] : held_)
    for (const Action& action : actions)
      if (const Send* message = std::get_if<Send>(&action);
          message != nullptr && message->task == task && std::holds_alternative<Message>(message->message))
        return true;
  return false;
}

// The whole time, as if it had been asked now.
void Job::give_pacer_time(Turn& turn) {
  const bool is_asked = stage_ == Stage::kSettle || stage_ == Stage::kReclaim;
  if (is_asked && awaited_.count(pacer()) != 0) deadline_ = turn.now + answer_limit();
}

void Job::repeat_roster(Turn& turn) {
  give_pacer_time(turn);
  if (!is_held_for<SetRoster>(pacer().task)) send(turn, pacer().task, SetRoster{id(), generation_, roster_});
}

// In the order of lose_worker().
void Job::repeat_ps_requests(Turn& turn, const Member& member) {
  for (Fence& fence : fences_) {
    const bool owes = std::any_of(fence.owed.begin(), fence.owed.end(),
                                  [&](ShardId shard) { return owners_[shard.value].ps == member; });
    if (owes || member == pacer()) fence.deadline = turn.now + answer_limit();
    if (owes) send(turn, member.task, FenceWorker{id(), generation_, fence.worker});
  }
  if (member == pacer()) repeat_roster(turn);
}

void Job::repeat_training_requests(Turn& turn, const Member& member) {
  const auto send_to = [this, &turn, &member](ToTask message) { send(turn, member.task, std::move(message)); };
  repeat_ps_requests(turn, member);
  if (unfinished_.count(member) == 0) return;
  if (joining_.count(member) != 0) {
    if (!is_held_for<OpenJob>(member.task)) ask_to_open(turn, member);
    return;
  }
  send_to(StartJob{id(), generation_});
  send_to(PauseJob{id(), generation_, holds_workers(turn.tasks), reason_});
  if (evaluator_ == member && config().evaluate.every_steps != 0) send_to(SetEvaluator{id(), generation_});
  if (stopping_ || told_to_stop_.count(member) != 0) return send_to(StopJob{id(), generation_});
  grant_again(turn, member);
}

void Job::on_worker_finished(Turn& turn, const Member& from, const WorkerFinished& finished) {
  worker_steps_[from] = finished.steps;
  // Its part isn't done: the others, or its successor, go on with it.
  if (told_to_stop_.count(from) != 0 && !stopping_) return void(stopped_.insert(from));
  if (unfinished_.erase(from) == 0) return;
  lending_.forget(from);
  early_requests_.erase(from);
  check_end(turn);
  // A synchronous job that is stopped: the others may be within a step that this one won't take part in.
  if (stage_ == Stage::kTrain && stopping_ && is_sync() && !unfinished_.empty()) {
    std::vector<Member> others = roster_.members;
    std::erase(others, from);
    change_roster(turn, std::move(others), std::nullopt);
  }
}

bool Job::any_is_left() const {
  return std::any_of(roster_.members.begin(), roster_.members.end(),
                     [this](const Member& member) { return lost_.count(member) == 0; });
}

// All have finished, or nobody is left and nothing is left to do.
void Job::check_end(Turn& turn) {
  if (stage_ != Stage::kTrain || !unfinished_.empty()) return;
  if (stopping_) return on_all_finished(turn);
  const bool has_leases = config().data.sharding == Sharding::kLease;
  // What a lost worker left behind needs somebody who takes it.
  if (has_leases ? lending_.is_complete() : (pacer_report_.finished || any_is_left())) on_all_finished(turn);
}

// A task whose connection is away is asked again once it is back. One that merely doesn't hear the chief gives its
// connection up within answer_limit().
bool Job::hears_both_ways(const Tasks& tasks, const Member& member) const {
  const Task* task = tasks.find(member.task);
  return task != nullptr && task->member == member && task->connected && task->state != TaskState::kSilent;
}

void Job::check_stall(Turn& turn) {
  if (!silent_ps_.empty()) return;
  if (leaving_owner(turn.tasks)) progress_at_ = turn.now;
  for (Fence& fence : fences_) {
    if (fence.held) continue;
    const Member& debtor = fence.owed.empty() ? pacer() : owners_[fence.owed.begin()->value].ps;
    if (!hears_both_ways(turn.tasks, debtor)) fence.deadline = turn.now + answer_limit();
    if (turn.now < fence.deadline) continue;
    return recover(turn, {debtor.task, "it heartbeats, but didn't fence " + to_string(fence.worker.task) + " within " +
                                           seconds(answer_limit())});
  }
  if (is_short_) return;
  const bool evaluates = std::any_of(unfinished_.begin(), unfinished_.end(), [&turn](const Member& worker) {
    const Task* task = turn.tasks.find(worker.task);
    return task != nullptr && task->heartbeat.phase == Phase::kEvaluate;
  });
  const Duration patience = config().job.stall_timeout * (evaluates ? kEvaluationPatience : 1);
  if (stopping_ || turn.now - progress_at_ <= patience) return;
  const RootCause cause = who_is_waited_for(turn.tasks);
  // Both ends of a link may be well.
  std::string links;
  for (const TaskId worker : voters(turn.tasks))
    if (const std::string own = links_of(turn.now, worker); !own.empty()) links += (links.empty() ? "" : "; ") + own;
  fail(turn,
       Error{ErrorCode::kFailed, "no step for " + seconds(patience) + " at step " +
                                     std::to_string(pacer_report_.global_step.value) + ": " +
                                     (links.empty() ? "" : links + "; ") + cause.reason},
       links.empty() ? std::optional(cause.task) : std::nullopt);
}

// Who is in a phase of its own (input, compute) longest holds the others up; if all wait for an answer, the ps tasks
// do.
RootCause Job::who_is_waited_for(const Tasks& tasks) const {
  std::string phases;
  const Task* slowest = nullptr;
  for (const Member& worker : unfinished_) {
    const Task* task = tasks.find(worker.task);
    if (task == nullptr) continue;
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
