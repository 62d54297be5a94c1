#include "chiefd/core/job/start_failures.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

StartFailures::StartFailures(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      events_(parts.events),
      condition_(parts.condition),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      worker_losses_(parts.worker_losses),
      reachability_(parts.reachability),
      launch_(parts.launch),
      membership_(parts.membership),
      recovery_(parts.recovery) {}

bool StartFailures::may_start_with(std::size_t workers) const {
  return !condition_.is_stopping() && workers_.ranks().empty() && workers >= setup_.least_workers();
}

// A restarted chief may have begun with the worker that fails alone, and meanwhile the others are back.
bool StartFailures::may_start_without(const Turn& turn, const Member& worker) const {
  return may_start_with(others_in_roster({worker}) + others_outside(turn));
}

std::size_t StartFailures::others_in_roster(const std::set<Member>& without) const {
  const std::vector<Member>& members = workers_.roster().members;
  return static_cast<std::size_t>(std::count_if(members.begin(), members.end(), [&](const Member& member) {
    return without.count(member) == 0 && !workers_.is_lost(member);
  }));
}

std::size_t StartFailures::others_outside(const Turn& turn) const {
  const auto& tasks = turn.tasks.all();
  return static_cast<std::size_t>(std::count_if(tasks.begin(), tasks.end(), [&](const auto& entry) {
    const auto& [id, task] = entry;
    return id.role == Role::kWorker && task.takes_work() && !workers_.is_in_roster(task.member) &&
           !candidates_.is_left_out(task) && !candidates_.awaits_retry(task.member) &&
           !worker_losses_.is_too_often(id, turn.now) && reachability_.reaches_owners(id);
  }));
}

Loss StartFailures::loss_of(TaskId worker) const {
  return candidates_.was_lost_at_start(worker) ? Loss::kCounts : Loss::kSpared;
}

void StartFailures::note(Turn& turn, const Member& worker, const Error& error, bool is_process) {
  failures_[worker] = Failure{error, is_process};
  workers_.mark_lost(worker);
  if (stage_.answered(worker)) advance(turn);
}

void StartFailures::advance(Turn& turn) {
  if (failures_.empty()) return launch_.set_roster(turn);
  const auto is_spared = [this](const auto& failure) { return loss_of(failure.first.task) == Loss::kSpared; };
  const Loss loss = std::any_of(failures_.begin(), failures_.end(), is_spared) ? Loss::kSpared : Loss::kCounts;
  const auto [worker, failure] = *failures_.begin();
  settle(turn);
  recovery_.recover(turn, {worker.task, failure.error.message}, loss);
}

// Even if another process of the task joins at once, the next generation starts without it if it can.
void StartFailures::settle(Turn& turn) {
  for (const auto& [worker, failure] : std::exchange(failures_, {})) {
    candidates_.note_lost_at_start(worker.task);
    if (failure.is_process)
      leave_out(turn, worker, failure.error.message);
    else
      membership_.tell_loss(turn, worker, failure.error.message, Loss::kCounts);
  }
}

bool StartFailures::give_up_on_awaited(Turn& turn, const Error& error) {
  const std::vector<Member> late(stage_.awaited().begin(), stage_.awaited().end());
  if (!stage_.is(Stage::kOpen) || late.empty() || condition_.is_stopping() || !workers_.ranks().empty()) return false;
  if (others_in_roster(stage_.awaited()) + others_outside(turn) < setup_.least_workers()) return false;
  for (const Member& worker : late) note(turn, worker, error, true);
  return true;
}

// A worker that has failed may still hold memory of the job, and one that hangs ends its process.
void StartFailures::leave_out(Turn& turn, const Member& worker, const std::string& why) {
  const Task* task = turn.tasks.find(worker.task);
  if (task == nullptr || task->member != worker) return;
  candidates_.leave_out(*task, "can't take part in the job until its process is another one: " + why);
  events_.tell(turn, "worker_refused", 2, to_string(worker.task) + " can't take part: " + why, worker.task);
  events_.warn("goes on without " + to_string(worker.task) + ": " + why);
  if (turn.tasks.is_current(worker))
    turn.send(worker.task,
              CloseJob{setup_.id, generation_.number(), "the job goes on without this task: " + why, true});
}

}  // namespace disttrain::chiefd
