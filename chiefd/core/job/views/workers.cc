#include "chiefd/core/job/views/workers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/job/absent.h"
#include "chiefd/core/job/views/end.h"
#include "chiefd/core/job/views/fitness.h"
#include "chiefd/core/job/views/links.h"

namespace disttrain::chiefd::views {
namespace {

bool is_work_left(const JobFacts& job) {
  if (job.setup.config().data.sharding == Sharding::kLease) return !job.loans.is_complete();
  const bool any_has_ended = job.workers.unfinished().empty() && job.workers.has_living();
  return !any_has_ended && !job.progress.report().finished;
}

std::string was_lost_too_often(const JobFacts& job, TaskId worker) {
  const std::string why = job.worker_losses.why_lost(worker);
  return "it was lost more than job.max_restarts (" + std::to_string(job.setup.config().job.max_restarts) +
         ") times within job.restart_window, and too few other workers are left" +
         (why.empty() ? "" : "; the last loss: ") + why;
}

}  // namespace

bool has_work_for(const JobFacts& job, TaskId worker) {
  if (job.condition.is_stopping() || job.progress.report().finished) return false;
  if (job.setup.config().data.sharding == Sharding::kLease) return !job.loans.is_complete();
  // Each worker goes through the whole data set. If an earlier process of the task has finished, the task has no work
  // left.
  return std::none_of(job.workers.all().begin(), job.workers.all().end(), [&job, worker](const Member& member) {
    return member.task == worker && !job.workers.is_lost(member);
  });
}

// Returns the roster after this worker has joined. The worker takes the place of the earlier process of its task.
std::vector<Member> roster_with(const JobFacts& job, const Member& worker) {
  std::vector<Member> members = job.workers.roster().members;
  // A worker that has finished makes no more steps, so the next roster doesn't have it.
  if (job.setup.is_sync() && !job.setup.waits_for_lost())
    std::erase_if(members, [&job](const Member& member) { return !job.workers.is_unfinished(member); });
  const auto predecessor = std::find_if(members.begin(), members.end(),
                                        [&worker](const Member& member) { return member.task == worker.task; });
  if (predecessor != members.end())
    *predecessor = worker;
  else
    members.push_back(worker);
  return members;
}

std::string lost_too_often(const JobFacts& job, TaskId worker, Instant now) {
  const std::size_t losses = job.worker_losses.losses_of(worker, now);
  const std::string why = job.worker_losses.why_lost(worker);
  return "can't rejoin the job: it was lost " + std::to_string(losses) + (losses == 1 ? " time" : " times") +
         " within job.restart_window, and job.max_restarts is " + std::to_string(job.setup.config().job.max_restarts) +
         (why.empty() ? "" : "; the last loss: " + why);
}

std::string no_place_for(const JobFacts& job, const Tasks& tasks, std::size_t workers) {
  const std::string problem = job.generation.memory_fit(tasks).why_not(static_cast<std::uint32_t>(workers));
  if (!problem.empty()) return "can't join the job: " + problem;
  return "can't join the job: the shards' memory was made for " + std::to_string(job.generation.places()) +
         " workers; submit the job again to train with more";
}

std::vector<Owner> ps_to_reach(const Tasks& tasks) {
  std::vector<Owner> ps;
  for (const auto& [id, task] : tasks.all())
    if (id.role == Role::kPs && task.is_there()) ps.push_back(Owner{task.member, task.hello.address});
  return ps;
}

std::vector<Awaited> missing_in_training(const JobFacts& job, const Tasks& tasks) {
  std::vector<Awaited> missing;
  if (job.condition.is_stopping() || !is_work_left(job)) return missing;
  if (job.setup.waits_for_lost())
    for (const Member& member : job.workers.roster().members)
      if (job.workers.is_lost(member))
        missing.push_back(absent(member.task, tasks.find(member.task), job.pauses.short_since()));
  // Workers that have finished count too, although in sync the roster may be without them: they are there and have done
  // their part. Otherwise a job in which some have finished would wait for more workers than it can get.
  const auto living =
      static_cast<std::size_t>(std::count_if(job.workers.all().begin(), job.workers.all().end(),
                                             [&job](const Member& member) { return !job.workers.is_lost(member); }));
  if (missing.empty() && living < job.setup.least_workers())
    missing.push_back({std::nullopt, AwaitedFor::kHello, job.pauses.short_since(), job.setup.least_workers() - living});
  return missing;
}

std::string shortage(const JobFacts& job, const Tasks& tasks, Instant now) {
  const std::vector<Awaited> missing = missing_in_training(job, tasks);
  if (missing.empty()) return "";
  std::string banned;
  for (const auto& [id, task] : tasks.all())
    if (job.candidates.awaits_retry(task.member) && job.candidates.kept_out().count(id) != 0)
      banned += "; " + to_string(id) + " " + job.candidates.kept_out().at(id);
    else if (id.role == Role::kWorker && job.worker_losses.is_too_often(id, now))
      banned += "; " + to_string(id) + " can't rejoin, because it was lost more than job.max_restarts (" +
                std::to_string(job.setup.config().job.max_restarts) + ") times within job.restart_window";
  std::string links = broken_links_text(job, now);
  if (!links.empty()) links = "; " + links;
  if (missing.front().task)
    return "waiting for " + to_string(missing) + " (job.on_worker_loss is \"wait\")" + banned + links;
  return std::to_string(job.setup.least_workers() - missing.front().count) + " of at least " +
         std::to_string(job.setup.least_workers()) + " workers are there; waiting for others" + banned + links;
}

std::optional<TaskId> last_hope(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (job.setup.waits_for_lost()) {
    for (const TaskId rank : job.workers.ranks())
      if (const Task* task = tasks.find(rank); task != nullptr && is_barred(job, *task)) return rank;
    // The next generation takes every worker that is there, however often it was lost.
    if (job.stage.is(Stage::kRegather)) return std::nullopt;
    for (const Awaited& rank : missing_in_training(job, tasks))
      if (rank.task && job.worker_losses.is_too_often(*rank.task, now)) return rank.task;
    return std::nullopt;
  }
  std::optional<TaskId> banned;
  std::size_t others = 0;
  for (const auto& [id, task] : tasks.all()) {
    if (id.role != Role::kWorker) continue;
    if (job.worker_losses.is_too_often(id, now) || is_barred(job, task))
      banned = id;
    else
      ++others;
  }
  return others < job.setup.least_workers() ? banned : std::nullopt;
}

std::optional<Blame> in_vain(const JobFacts& job, const Tasks& tasks, Instant now) {
  const std::optional<TaskId> lost = last_hope(job, tasks, now);
  if (!lost) return std::nullopt;
  // After a restart of the chief, a worker that isn't in the cluster file may be unknown.
  const Task* task = tasks.find(*lost);
  const std::string others = job.setup.waits_for_lost()
                                 ? "; no other worker may take its rank (job.on_worker_loss is \"wait\")"
                                 : "; too few other workers are left";
  const std::string reason = task != nullptr && is_barred(job, *task)
                                 ? "it " + job.candidates.kept_out().at(*lost) + others
                                 : was_lost_too_often(job, *lost);
  // The workers that failed before may have another reason.
  const std::optional<Rollback>& rollback = job.rollbacks.current();
  const std::string before = rollback ? "; the job had rolled back because of " + to_string(rollback->cause) : "";
  return Blame{Error{ErrorCode::kFailed, reason + before}, *lost};
}

bool can_do_without(const JobFacts& job, const Tasks& tasks, TaskId worker, Instant now) {
  const std::vector<Member>& members = job.workers.roster().members;
  const bool is_waited_for =
      job.setup.waits_for_lost() && std::any_of(members.begin(), members.end(), [&](const Member& member) {
        return member.task == worker && job.workers.is_lost(member);
      });
  if (job.workers.has_rank(worker) || is_waited_for) return false;
  const std::size_t others =
      count_workers(tasks, [&](const Task& task) { return task.member.task != worker && may_come(job, task, now); });
  return others >= job.setup.least_workers();
}

// Returns true if the roster has workers that have finished, although records are left.
bool waits_for_finished(const JobFacts& job) {
  if (!job.stage.is(Stage::kTrain) || job.condition.is_stopping() || job.pauses.is_short()) return false;
  if (job.setup.config().data.sharding != Sharding::kLease || !job.loans.is_allowed || job.loans.is_complete())
    return false;
  if (job.workers.unfinished().empty()) return job.workers.has_living();
  const std::vector<Member> living = job.workers.living();
  return job.setup.is_sync() && !job.setup.waits_for_lost() &&
         std::any_of(living.begin(), living.end(),
                     [&job](const Member& worker) { return !job.workers.is_unfinished(worker); });
}

bool is_evaluating(const JobFacts& job, const Tasks& tasks) {
  return std::any_of(job.workers.unfinished().begin(), job.workers.unfinished().end(), [&tasks](const Member& worker) {
    const Task* task = tasks.find(worker.task);
    return task != nullptr && task->heartbeat.phase == Phase::kEvaluate;
  });
}

bool holds_workers(const JobFacts& job, const Tasks& tasks) {
  return job.pauses.is_any() || leaving_owner(job, tasks);
}

const Member& debtor_of(const JobFacts& job, const Fence& fence) {
  return fence.owed.empty() ? job.generation.pacer() : job.generation.owners()[fence.owed.begin()->value].ps;
}

}  // namespace disttrain::chiefd::views
