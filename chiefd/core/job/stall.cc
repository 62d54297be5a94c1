#include "chiefd/core/job/stall.h"

#include <algorithm>
#include <optional>
#include <string>

#include "chiefd/core/job/parts.h"
#include "common/format_duration.h"
#include "common/timeouts.h"

namespace disttrain::chiefd {
Stall::Stall(JobParts& parts)
    : setup_(parts.setup),
      condition_(parts.condition),
      progress_(parts.progress),
      generation_(parts.generation),
      workers_(parts.workers),
      worker_losses_(parts.worker_losses),
      pauses_(parts.pauses),
      reachability_(parts.reachability),
      fences_(parts.fences),
      training_(parts.training),
      leaving_(parts.leaving),
      recovery_(parts.recovery),
      ending_(parts.ending) {}

void Stall::check(Turn& turn) {
  if (pauses_.is_any_silent()) return;
  if (leaving_.owner(turn.tasks)) progress_.moved(turn.now);
  if (const std::optional<Fences::Late> late = fences_.find_late(turn))
    return recovery_.recover(
        turn, {late->debtor.task, "it heartbeats, but didn't fence " + to_string(late->worker.task) + " within " +
                                      format_duration(setup_.answer_limit())});
  if (pauses_.is_short()) return;
  const Duration patience =
      setup_.config().job.stall_timeout * (training_.is_evaluating(turn.tasks) ? kEvaluationPatience : 1);
  if (condition_.is_stopping() || turn.now - progress_.moved_at() <= patience) return;
  fail(turn, patience);
}

void Stall::fail(Turn& turn, Duration patience) {
  const RootCause cause = who_is_waited_for(turn.tasks);
  // If a link is broken, both of its ends may be healthy. So no task is blamed.
  std::string links;
  for (const TaskId worker : reachability_.voters(turn.tasks))
    if (const std::string own = reachability_.links_of(turn.now, worker); !own.empty())
      links += (links.empty() ? "" : "; ") + own;
  // The task that is blamed may be a worker that has just come back, so the reason tells why the last one was lost.
  const std::string lost = progress_.has_lost_since_step() ? worker_losses_.last_loss() : "";
  ending_.fail(turn,
               Error{ErrorCode::kFailed, "no step for " + format_duration(patience) + " at step " +
                                             std::to_string(progress_.step().value) + ": " +
                                             (links.empty() ? "" : links + "; ") + cause.reason +
                                             (lost.empty() ? "" : "; before that the job lost " + lost)},
               links.empty() ? std::optional(cause.task) : std::nullopt);
}

// Blames the worker that has been longest in a phase of its own (input, compute, evaluate, idle), because the others
// wait for this worker. If all workers wait for an answer of a ps, blames the pacer.
RootCause Stall::who_is_waited_for(const Tasks& tasks) const {
  std::string phases;
  const Task* slowest = nullptr;
  for (const Member& worker : workers_.unfinished()) {
    const Task* task = tasks.find(worker.task);
    if (task == nullptr) continue;
    const Heartbeat& heartbeat = task->heartbeat;
    phases += (phases.empty() ? "" : ", ") + to_string(worker.task) + " is in " + to_string(heartbeat.phase) + " for " +
              format_duration(heartbeat.in_phase);
    const bool works = heartbeat.phase == Phase::kInput || heartbeat.phase == Phase::kCompute ||
                       heartbeat.phase == Phase::kEvaluate || heartbeat.phase == Phase::kIdle;
    if (works && (slowest == nullptr || heartbeat.in_phase > slowest->heartbeat.in_phase)) slowest = task;
  }
  return RootCause{slowest != nullptr ? slowest->member.task : generation_.pacer().task, phases};
}

}  // namespace disttrain::chiefd
