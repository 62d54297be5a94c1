#include "chiefd/core/job/rules/failures.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/start.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::rules {
namespace {

// A ps couldn't create its shards. Returns true if another attempt may succeed: its disk may recover, or a folder that
// an earlier generation used may come back. job.max_restarts limits the number of attempts.
bool may_pass(const JobFacts& job, ErrorCode code) {
  if (!job.setup.takes_checkpoints()) return false;
  return code == ErrorCode::kFailed ||
         (job.generation.has_predecessor() && (code == ErrorCode::kConfig || code == ErrorCode::kNoInput));
}

}  // namespace

Verdict failed_to_join(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from,
                       const TaskFailed& failed, bool was_invited) {
  if (was_invited && !views::can_do_without(job, tasks, from.task, now)) return AskAgain{from, failed.reason};
  // While a worker opens its channels, another task may be the cause: a ps that the chief doesn't reach, for example,
  // has no roster with this worker and doesn't answer it. So the worker isn't blamed, and may try again.
  const bool is_own =
      was_invited || failed.code != ErrorCode::kUnavailable || fault_of(failed.code, failed.reason).is_own;
  if (is_own) return LeaveOut{from, failed.reason};
  return Refuse{from, failed.reason};
}

Verdict failed(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from, const TaskFailed& failed) {
  const Error error{failed.code, failed.reason};
  // While the job gives a generation up, tasks of this generation fail as a consequence. So their failures are ignored.
  // Before the first generation, a failure is that of a description that the job no longer waits for.
  const bool has_generation = job.stage.traits().has_generation && !job.stage.is(Stage::kGeneration);
  if (!views::uses(job, from) || failed.generation != job.generation.number() || !has_generation) return Stay{};
  if (job.stage.is(Stage::kCreate) && job.generation.is_owner(from)) {
    if (failed.code == ErrorCode::kData && job.generation.restore())
      return SetCheckpointAside{to_string(from.task) + ": " + failed.reason};
    if (may_pass(job, failed.code)) return Recover{{from.task, failed.reason}};
  }
  // After kUnavailable another task may be the cause, unless the worker itself lacks something.
  const bool is_own = failed.code != ErrorCode::kUnavailable || fault_of(failed.code, failed.reason).is_own;
  if (job.stage.is(Stage::kOpen) && is_own && job.workers.is_taking_part(from) &&
      views::may_start_without(job, tasks, now, from))
    return StartWithout{{from}, error, true};
  // The worker's trainer has raised an exception in an evaluation.
  const bool raised = failed.code == ErrorCode::kFailed && job.workers.is_taking_part(from);
  if (raised && job.stage.is(Stage::kEvaluate)) return EvaluateWithout{from, error};
  if (failed.code != ErrorCode::kUnavailable && !raised) return Fail{error, from.task};
  // The task may have failed because it lost another task of the job. Then the other task is the root cause.
  return Suspect{from, error};
}

bool is_fault(const JobFacts& job, const Member& from, const TaskFailed& failed) {
  return job.stage.is(Stage::kTrain) && job.workers.is_taking_part(from) &&
         !fault_of(failed.code, failed.reason).what.empty();
}

Verdict at_fault(const Member& from, const TaskFailed& failed, Faults::Verdict times) {
  if (times == Faults::Verdict::kEveryWorker)
    return Fail{Error{ErrorCode::kFailed,
                      "each worker has failed in the same way, so another try would fail too: " + failed.reason},
                from.task};
  // No other task is the cause of a fault of its own, so the chief needn't wait for the other tasks.
  if (fault_of(failed.code, failed.reason).is_own) return Lose{from, failed.reason};
  return Suspect{from, Error{failed.code, failed.reason}};
}

Verdict lost_for_own_fault(const JobFacts& job, const Member& from, const std::string& reason, Faults::Verdict times) {
  std::set<TaskId> living = views::living_workers(job);
  living.erase(from.task);
  const bool has_others = living.size() >= job.setup.least_workers();
  if (times == Faults::Verdict::kAgain && has_others && !job.setup.waits_for_lost()) return LeaveOut{from, reason};
  return Stay{};
}

bool is_settled(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from, Instant since) {
  // The chief may notice a silence up to one tick and one heartbeat late.
  if (now - since >= job.setup.timeouts.silent + job.setup.timeouts.interval + job.setup.timeouts.heartbeat)
    return true;
  const std::vector<Member> all = views::all_members(job);
  return std::all_of(all.begin(), all.end(), [&](const Member& member) {
    const Task* task = tasks.find(member.task);
    // If the task isn't found, only the chief before the restart knew it.
    if (member == from || task == nullptr || task->member != member || job.workers.is_lost(member)) return true;
    return task->connected && task->last_heard > since;
  });
}

Verdict settled(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from, const std::string& why) {
  // A ps complains that it can't reach another ps.
  const auto link = std::find_if(job.links.broken().begin(), job.links.broken().end(), [&from](const auto& broken) {
    return broken.first.from == from.task && from.task.role == Role::kPs;
  });
  if (link != job.links.broken().end()) return Recover{{std::nullopt, job.links.text(now, link->first)}, Loss::kLink};
  // All tasks are healthy except the task that complains. If a worker complains, the chief blames this worker: a new
  // process of the worker, or other owners of the shards, may not have the problem. If a ps complains, the chief blames
  // no task, because a chief that was away can't tell which of two ps tasks was gone.
  const bool is_worker = job.workers.is_taking_part(from);
  if (is_worker && job.stage.is(Stage::kTrain)) return Lose{from, why};
  if (is_worker && job.stage.is(Stage::kOpen) && views::may_start_without(job, tasks, now, from))
    return StartWithout{{from}, Error{ErrorCode::kUnavailable, why}};
  if (is_worker) return Recover{{from.task, why}};
  return Recover{{std::nullopt, to_string(from.task) + ": " + why}};
}

}  // namespace disttrain::chiefd::rules
