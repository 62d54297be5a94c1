#include "chiefd/core/job/rules/workers.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/job/views/fitness.h"
#include "chiefd/core/job/views/links.h"
#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::rules {
Verdict joins(const JobFacts& job, const Tasks& tasks, Instant now, const Member& worker) {
  if (views::uses(job, worker) || job.workers.is_lost(worker) || !tasks.is_current(worker) ||
      !views::has_work_for(job, worker.task))
    return Stay{};
  const Task* task = tasks.find(worker.task);
  if (!views::is_available(job, *task) || !views::reaches_owners(job, worker.task)) return Stay{};
  // With an order of its own the worker goes on after the last push of its predecessor, which the fence tells.
  const bool has_own_order = job.setup.config().data.sharding == Sharding::kNone && !job.setup.is_sync();
  if (has_own_order && job.fences.is_fencing_task(worker.task)) return Stay{};
  if (job.worker_losses.is_too_often(worker.task, now))
    return KeepOut{worker.task, views::lost_too_often(job, worker.task, now)};
  if (const std::size_t workers = views::roster_with(job, worker).size(); workers > job.generation.places())
    return KeepOut{worker.task, views::no_place_for(job, tasks, workers)};
  // A worker that is lost again and again waits longer each time before it joins.
  if (job.worker_losses.must_wait(worker.task, task->joined, now)) return LetIn{worker.task};
  return Join{worker};
}

Verdict quorum(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (!job.stage.is(Stage::kTrain)) return Stay{};
  const std::string problem = views::shortage(job, tasks, now);
  if (problem.empty()) return job.pauses.is_short() ? Verdict(EndShortage{"the workers are there"}) : Verdict(Stay{});
  if (std::optional<views::Blame> blame = views::in_vain(job, tasks, now))
    return Fail{std::move(blame->error), blame->task};
  return job.pauses.is_short() ? Verdict(Stay{}) : Verdict(PauseForWorkers{problem});
}

Verdict finished_too_early(const JobFacts& job, Instant now) {
  if (now - *job.idle_since < job.setup.timeouts.silent + job.setup.timeouts.heartbeat) return Stay{};
  std::vector<Member> roster = job.workers.living();
  std::erase_if(roster, [&job](const Member& worker) { return !job.workers.is_unfinished(worker); });
  return ShareRest{std::move(roster)};
}

Verdict training_end(const JobFacts& job) {
  if (!job.stage.is(Stage::kTrain) || !job.workers.unfinished().empty()) return Stay{};
  if (job.condition.is_stopping()) return Settle{};
  const bool has_leases = job.setup.config().data.sharding == Sharding::kLease;
  // Training doesn't end while work of a lost worker is left, because another worker has to do this work.
  const bool is_done =
      has_leases ? job.loans.is_complete() : (job.progress.report().finished || job.workers.has_living());
  return is_done ? Verdict(Settle{}) : Verdict(Stay{});
}

}  // namespace disttrain::chiefd::rules
