#include "chiefd/core/job/rules/checkpoints.h"

#include <algorithm>
#include <optional>

#include "chiefd/core/job/views/checkpoints.h"
#include "chiefd/core/job/views/end.h"
#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::rules {
namespace {

// In sync, if checkpoint.every_steps makes a checkpoint due, the shards cut exactly at the due step. The chief orders
// this cut this many seconds before it expects the step.
constexpr double kSecondsAhead = 0.5;

// Returns the step at which the shards cut, if a checkpoint is due: by time, by steps, or because a client asks. Step
// 0: at once.
std::optional<Step> due(const JobFacts& job, Instant now) {
  const CheckpointSection& section = job.setup.config().checkpoint;
  if (job.savers.is_any()) return Step();
  if (section.every > Duration::zero() && now - job.schedule.newest_at() >= section.every) return Step();
  if (section.every_steps == 0) return std::nullopt;
  const PacerReport& report = job.progress.report();
  const double seconds = to_seconds(report.training);
  const double rate = seconds > 0 ? static_cast<double>(report.measured_steps) / seconds : 0.0;
  const auto ahead = job.setup.is_sync() ? static_cast<std::uint64_t>(rate * kSecondsAhead) : 0;
  const Step next = job.schedule.next_due();
  const bool is_near = report.global_step.value + ahead >= next.value && report.global_step.value > 0;
  if (!is_near) return std::nullopt;
  return job.setup.is_sync() ? next : Step();
}

}  // namespace

Verdict next_attempt(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (job.attempts.current) {
    // An attempt may exceed its deadline while a ps makes progress with writing its files.
    const Instant written = views::newest_work(job, tasks, job.generation.holders()) + job.setup.timeouts.setup;
    const bool is_late = now >= std::max(job.attempts.current->deadline, written);
    return is_late ? Verdict(GiveUpAttempt{"it took too long"}) : Verdict(Stay{});
  }
  if (!job.setup.takes_checkpoints() || !job.folder.is_open || !job.schedule.may_try(now)) return Stay{};
  if (job.stage.is(Stage::kFinalCut)) return TakeLastCheckpoint{};
  if (!job.stage.is(Stage::kTrain) || !job.workers.joining().empty() || !job.loans.is_allowed ||
      job.schedule.is_saved())
    return Stay{};
  if (views::leaving_owner(job, tasks))
    return job.pauses.is_any_silent() ? Verdict(Stay{}) : Verdict(TakeCheckpoint{Step()});
  if (job.condition.state() != JobState::kRunning) return Stay{};
  const std::optional<Step> at = due(job, now);
  if (!at) return Stay{};
  // In async and ssp, a worker can't mark its channels while it evaluates. Until the end of the evaluation the shards
  // couldn't cut, and the other workers would wait. So no attempt begins during an evaluation, unless a client has
  // asked for a checkpoint.
  if (views::is_evaluating(job, tasks) && !job.setup.is_sync() && !job.savers.is_any()) return Stay{};
  return TakeCheckpoint{*at};
}

Verdict written(const JobFacts& job) {
  const Attempt& attempt = *job.attempts.current;
  if (attempt.phase != Attempt::Phase::kCut || attempt.written.size() < job.generation.owners().size()) return Stay{};
  if (const auto problem = difference(attempt.written, job.workers.living()))
    return GiveUpAttempt{"the shards' copies differ: " + *problem};
  if (!attempt.written.begin()->second.pacer)
    return GiveUpAttempt{"shard 0, the pacer, reported its file without the ledger"};
  return Commit{};
}

Verdict folder_read(const JobFacts& job, const FolderAnswer& answer) {
  // With checkpoint.restore = "none" the operator has given up earlier checkpoints, so a broken one doesn't fail the
  // job.
  const bool had_some =
      job.folder.newest || (!answer.broken.empty() && job.setup.config().checkpoint.restore != Restore::kNone);
  if (!answer.newest && had_some) return Fail{views::nothing_left(job, answer)};
  return Stay{};
}

// A disk that is full or failing may recover, so the chief retries each second until the stage's deadline. If the
// folder doesn't exist or belongs to another job, a job that was just submitted fails at once. If the job has used the
// folder before, the chief retries in these cases too, because the folder may come back.
Verdict folder_failed(const JobFacts& job, const Error& error) {
  const bool may_pass =
      error.code == ErrorCode::kFailed || !job.stage.is(Stage::kFolder) || job.generation.number().value != 0;
  return may_pass ? Verdict(Stay{}) : Verdict(Fail{error});
}

}  // namespace disttrain::chiefd::rules
