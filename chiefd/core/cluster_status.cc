// The part of Cluster that reports the status of jobs and tasks, with their figures. See cluster.h.
#include <algorithm>
#include <cmath>
#include <set>

#include "chiefd/core/cluster.h"

namespace disttrain::chiefd {

TaskStatus Cluster::presence(const Task& task, Instant now) const {
  TaskStatus status;
  status.task = task.member.task;
  status.is_listed = task.is_listed;
  status.pid = task.hello.pid;
  status.address = task.hello.address;
  status.host = task.hello.host;
  status.metrics = task.hello.metrics;
  status.state = task.state;
  status.reason = task.reason;
  if (task.is_there() && task.unreleased != JobId()) {
    status.state = TaskState::kBusy;
    status.reason = "it hasn't released job " + std::to_string(task.unreleased.value) + " yet";
  }
  status.losses = task.losses;
  if (task.member.incarnation.value == 0) return status;
  // Tasks::tick() may have moved last_heard ahead of the current time.
  status.heartbeat_age = std::max(now - task.last_heard, Duration::zero());
  if (task.state == TaskState::kReady || task.state == TaskState::kSilent) {
    status.phase = task.heartbeat.phase;
    status.in_phase = task.heartbeat.in_phase;
  }
  return status;
}

TaskFigures Cluster::figures(const Task& task, const Job& job, bool is_at_work) const {
  TaskFigures figures;
  const bool is_worker = task.member.task.role == Role::kWorker;
  if (task.heartbeat.job == job.id()) {
    // The pacer counts the job's steps. The chief may know of more steps than the pacer's last heartbeat has reported,
    // so use the chief's number.
    figures.step = task.heartbeat.pacer ? job.reached().value : task.heartbeat.steps;
    figures.phase_times = job.measured_times(task.member, task.heartbeat.phase_times);
    figures.data_times = task.heartbeat.data_times;
    figures.shards = task.heartbeat.shards;
  }
  // A short job may end between two heartbeats. Then the worker's final report is newer than its last heartbeat.
  if (is_worker) figures.step = std::max(figures.step, job.steps_of(task.member));
  if (is_worker && is_at_work) {
    figures.examples_per_second = task.rate.per_second();
    if (std::isfinite(task.heartbeat.loss) && task.heartbeat.examples > 0) figures.loss = task.heartbeat.loss;
  }
  return figures;
}

std::optional<std::uint64_t> Cluster::reached_by(const Task& task) const {
  if (!current_ || !tasks_.is_current(task.member)) return std::nullopt;
  return jobs_.at(*current_)->reached_by(task.member, task.heartbeat);
}

std::vector<TaskStatus> Cluster::tasks(Instant now) const {
  return current_ ? tasks_in_current_job(now) : tasks_in_no_job(now);
}

std::vector<TaskStatus> Cluster::tasks_in_no_job(Instant now) const {
  std::vector<TaskStatus> statuses;
  for (const auto& [id, task] : tasks_.all()) statuses.push_back(presence(task, now - slept_));
  return statuses;
}

std::vector<TaskStatus> Cluster::tasks_in_current_job(Instant now) const {
  const Job& job = *jobs_.at(*current_);
  const std::vector<Member> list = job.members();
  const std::set<Member> members(list.begin(), list.end());
  std::map<Role, std::uint64_t> furthest;
  for (const auto& [id, task] : tasks_.all())
    furthest[id.role] = std::max(furthest[id.role], reached_by(task).value_or(0));
  std::vector<TaskStatus> statuses;
  for (const auto& [id, task] : tasks_.all()) {
    TaskStatus status = presence(task, now - slept_);
    const bool is_ready = status.state == TaskState::kReady;
    const bool is_used = members.count(task.member) != 0 || job.is_evaluated_by(task.member);
    const bool is_at_work = is_ready && task.heartbeat.job == *current_ && is_used;
    if (is_ready && status.reason.empty()) status.reason = job.why_kept_out(id, now - slept_);
    if (is_at_work) status.state = TaskState::kRunning;
    status.rank = job.rank_of(task.member);
    status.figures = figures(task, job, is_at_work);
    if (const auto reached = reached_by(task)) status.figures.lag = furthest[id.role] - *reached;
    statuses.push_back(std::move(status));
  }
  return statuses;
}

// The tasks in the status of a job that isn't running. They have their current state, and the rank and the figures that
// they had at the end of this job.
std::vector<TaskStatus> Cluster::tasks_beside(JobId id, Instant now) const {
  std::vector<TaskStatus> statuses = tasks(now);
  const auto frozen = frozen_.find(id);
  for (TaskStatus& status : statuses) {
    if (status.state == TaskState::kRunning && current_ != id) {
      status.state = TaskState::kReady;
      status.reason = "in job " + jobs_.at(*current_)->name();
    }
    status.rank.reset();
    status.figures = TaskFigures();
    if (frozen == frozen_.end()) continue;
    const auto at_end = frozen->second.find(status.task);
    if (at_end == frozen->second.end()) continue;
    status.rank = at_end->second.rank;
    status.figures = at_end->second.figures;
  }
  return statuses;
}

JobStatus Cluster::status(JobId id, Instant now) const {
  const Job& job = *jobs_.at(id);
  JobStatus status = job.status(now - slept_);
  const bool has_figures_of_its_own = current_ == id && frozen_.count(id) == 0;
  status.tasks = has_figures_of_its_own ? tasks(now) : tasks_beside(id, now);
  status.waits_for = job.waits_for(tasks_, now - slept_);
  if (is_final(status.state)) status.resubmitted_as = successor(id);
  if (const auto trace = traces_.find(id); trace != traces_.end()) status.trace = trace->second;
  return status;
}

// Stores the ranks and figures that the tasks have in the current job, because they are lost when the tasks close the
// job. Later queries get the stored ones.
void Cluster::freeze_figures(Instant now) {
  if (frozen_.count(*current_) != 0) return;
  auto& frozen = frozen_[*current_];
  for (const TaskStatus& task : tasks(now + slept_)) frozen.emplace(task.task, AtEnd{task.rank, task.figures});
}

}  // namespace disttrain::chiefd
