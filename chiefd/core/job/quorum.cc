#include "chiefd/core/job/quorum.h"

#include <algorithm>

#include "chiefd/core/job/absent.h"
#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

Quorum::Quorum(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      progress_(parts.progress),
      workers_(parts.workers),
      candidates_(parts.candidates),
      worker_losses_(parts.worker_losses),
      pauses_(parts.pauses),
      rollbacks_(parts.rollbacks),
      reachability_(parts.reachability),
      loans_(parts.loans),
      pausing_(parts.pausing),
      checkpointing_(parts.checkpointing),
      ending_(parts.ending) {}

void Quorum::check(Turn& turn) {
  if (!stage_.is(Stage::kTrain)) return;
  const std::string problem = shortage(turn);
  if (problem.empty()) {
    if (!pauses_.is_short()) return;
    pauses_.end_shortage();
    progress_.moved(turn.now);
    if (!pausing_.holds_workers(turn.tasks)) {
      pausing_.tell_workers(turn, false, "the workers are there");
      condition_.set(turn, condition_.is_stopping() ? JobState::kStopping : JobState::kRunning,
                     "the workers are there");
    }
    return;
  }
  if (fail_without_hope(turn)) return;
  if (!pauses_.is_short()) {
    pauses_.begin_shortage(turn.now);
    checkpointing_.interrupt(turn, problem);  // a lost worker would never mark its channels
    pausing_.tell_workers(turn, true, problem);
    condition_.set(turn, JobState::kPaused, problem);
  }
}

bool Quorum::fail_without_hope(Turn& turn) {
  const std::optional<TaskId> lost = last_hope(turn);
  if (!lost) return false;
  // After a restart of the chief, a worker that isn't in the cluster file may be unknown.
  const Task* task = turn.tasks.find(*lost);
  const std::string why = worker_losses_.why_lost(*lost);
  const std::string reason = task != nullptr && is_barred(*task)
                                 ? "it " + candidates_.kept_out().at(*lost) +
                                       (setup_.waits_for_lost() ? "; no other worker may take its rank "
                                                                  "(job.on_worker_loss is \"wait\")"
                                                                : "; too few other workers are left")
                                 : "it was lost more than job.max_restarts (" +
                                       std::to_string(setup_.config().job.max_restarts) +
                                       ") times within job.restart_window, and too few other workers are left" +
                                       (why.empty() ? "" : "; the last loss: ") + why;
  // The workers that failed before may have another reason.
  const std::optional<Rollback>& rollback = rollbacks_.current();
  const std::string before = rollback ? "; the job had rolled back because of " + to_string(rollback->cause) : "";
  ending_.fail(turn, Error{ErrorCode::kFailed, reason + before}, *lost);
  return true;
}

std::optional<TaskId> Quorum::last_hope(const Turn& turn) const {
  if (setup_.waits_for_lost()) {
    for (const TaskId rank : workers_.ranks())
      if (const Task* task = turn.tasks.find(rank); task != nullptr && is_barred(*task)) return rank;
    // The next generation takes every worker that is there, however often it was lost.
    if (stage_.is(Stage::kRegather)) return std::nullopt;
    for (const Awaited& rank : missing(turn.tasks))
      if (rank.task && worker_losses_.is_too_often(*rank.task, turn.now)) return rank.task;
    return std::nullopt;
  }
  std::optional<TaskId> banned;
  std::size_t others = 0;
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kWorker) continue;
    if (worker_losses_.is_too_often(id, turn.now) || is_barred(task))
      banned = id;
    else
      ++others;
  }
  return others < setup_.least_workers() ? banned : std::nullopt;
}

// When a process that is left out has gone, the next process of its task may take part. A job that has never trained
// doesn't wait for what a worker lacks: as at its first start, it fails if no worker can take part.
bool Quorum::is_barred(const Task& task) const {
  const bool lacks_something = !condition_.was_opened() && candidates_.awaits_retry(task.member);
  return task.is_there() && (lacks_something || candidates_.is_left_out(task));
}

bool Quorum::can_do_without(const Tasks& tasks, TaskId worker, Instant now) const {
  const std::vector<Member>& members = workers_.roster().members;
  const bool is_waited_for =
      setup_.waits_for_lost() && std::any_of(members.begin(), members.end(), [&](const Member& member) {
        return member.task == worker && workers_.is_lost(member);
      });
  if (workers_.has_rank(worker) || is_waited_for) return false;
  const auto others = std::count_if(tasks.all().begin(), tasks.all().end(), [&](const auto& entry) {
    const auto& [id, task] = entry;
    return id.role == Role::kWorker && id != worker && task.is_there() && !candidates_.is_left_out(task) &&
           !worker_losses_.is_too_often(id, now);
  });
  return static_cast<std::size_t>(others) >= setup_.least_workers();
}

std::string Quorum::shortage(const Turn& turn) const {
  const std::vector<Awaited> missing = this->missing(turn.tasks);
  if (missing.empty()) return "";
  std::string banned;
  for (const auto& [id, task] : turn.tasks.all())
    if (candidates_.awaits_retry(task.member) && candidates_.kept_out().count(id) != 0)
      banned += "; " + to_string(id) + " " + candidates_.kept_out().at(id);
    else if (id.role == Role::kWorker && worker_losses_.is_too_often(id, turn.now))
      banned += "; " + to_string(id) + " can't rejoin, because it was lost more than job.max_restarts (" +
                std::to_string(setup_.config().job.max_restarts) + ") times within job.restart_window";
  std::string links = reachability_.broken_links_text(turn.now);
  if (!links.empty()) links = "; " + links;
  if (missing.front().task)
    return "waiting for " + to_string(missing) + " (job.on_worker_loss is \"wait\")" + banned + links;
  return std::to_string(setup_.least_workers() - missing.front().count) + " of at least " +
         std::to_string(setup_.least_workers()) + " workers are there; waiting for others" + banned + links;
}

std::vector<Awaited> Quorum::missing(const Tasks& tasks) const {
  std::vector<Awaited> missing;
  if (condition_.is_stopping() || !is_work_left()) return missing;
  if (setup_.waits_for_lost())
    for (const Member& member : workers_.roster().members)
      if (workers_.is_lost(member))
        missing.push_back(absent(member.task, tasks.find(member.task), pauses_.short_since()));
  // Workers that have finished count too, although in sync the roster may be without them: they are there and have done
  // their part. Otherwise a job in which some have finished would wait for more workers than it can get.
  const auto living =
      static_cast<std::size_t>(std::count_if(workers_.all().begin(), workers_.all().end(),
                                             [this](const Member& member) { return !workers_.is_lost(member); }));
  if (missing.empty() && living < setup_.least_workers())
    missing.push_back({std::nullopt, AwaitedFor::kHello, pauses_.short_since(), setup_.least_workers() - living});
  return missing;
}

bool Quorum::is_work_left() const {
  if (setup_.config().data.sharding == Sharding::kLease) return !loans_.is_complete();
  const bool any_has_ended = workers_.unfinished().empty() && workers_.has_living();
  return !any_has_ended && !progress_.report().finished;
}

}  // namespace disttrain::chiefd
