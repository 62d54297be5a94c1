#include "chiefd/core/job/rules/stall.h"

#include <optional>
#include <string>

#include "chiefd/core/job/views/links.h"
#include "chiefd/core/job/views/workers.h"
#include "common/format_duration.h"
#include "common/timeouts.h"

namespace disttrain::chiefd::rules {
namespace {

// Blames the worker that has been longest in a phase of its own (input, compute, evaluate, idle), because the others
// wait for this worker. If all workers wait for an answer of a ps, blames the pacer.
RootCause who_is_waited_for(const JobFacts& job, const Tasks& tasks) {
  std::string phases;
  const Task* slowest = nullptr;
  for (const Member& worker : job.workers.unfinished()) {
    const Task* task = tasks.find(worker.task);
    if (task == nullptr) continue;
    const Heartbeat& heartbeat = task->heartbeat;
    phases += (phases.empty() ? "" : ", ") + to_string(worker.task) + " is in " + to_string(heartbeat.phase) + " for " +
              format_duration(heartbeat.in_phase);
    const bool works = heartbeat.phase == Phase::kInput || heartbeat.phase == Phase::kCompute ||
                       heartbeat.phase == Phase::kEvaluate || heartbeat.phase == Phase::kIdle;
    if (works && (slowest == nullptr || heartbeat.in_phase > slowest->heartbeat.in_phase)) slowest = task;
  }
  return RootCause{slowest != nullptr ? slowest->member.task : job.generation.pacer().task, phases};
}

}  // namespace

Verdict late_fence(const JobFacts& job, Instant now) {
  for (const Fence& fence : job.fences.all) {
    if (fence.held || now < fence.deadline) continue;
    return Recover{{views::debtor_of(job, fence).task, "it heartbeats, but didn't fence " +
                                                           to_string(fence.worker.task) + " within " +
                                                           format_duration(job.setup.answer_limit())}};
  }
  return Stay{};
}

Verdict stalled(const JobFacts& job, const Tasks& tasks, Instant now) {
  const Duration patience =
      job.setup.config().job.stall_timeout * (views::is_evaluating(job, tasks) ? kEvaluationPatience : 1);
  if (job.pauses.is_short() || job.condition.is_stopping() || now - job.progress.moved_at() <= patience) return Stay{};
  const RootCause cause = who_is_waited_for(job, tasks);
  // If a link is broken, both of its ends may be healthy. So no task is blamed.
  std::string links;
  for (const TaskId worker : views::voters(job, tasks))
    if (const std::string own = views::links_of(job, now, worker); !own.empty())
      links += (links.empty() ? "" : "; ") + own;
  // The task that is blamed may be a worker that has just come back, so the reason tells why the last one was lost.
  const std::string lost = job.progress.has_lost_since_step() ? job.worker_losses.last_loss() : "";
  return Fail{Error{ErrorCode::kFailed, "no step for " + format_duration(patience) + " at step " +
                                            std::to_string(job.progress.step().value) + ": " +
                                            (links.empty() ? "" : links + "; ") + cause.reason +
                                            (lost.empty() ? "" : "; before that the job lost " + lost)},
              links.empty() ? std::optional(cause.task) : std::nullopt};
}

}  // namespace disttrain::chiefd::rules
