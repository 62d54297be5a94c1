#include "chiefd/core/job/rules/recovery.h"

#include <string>

#include "chiefd/core/job/views/recovery.h"

namespace disttrain::chiefd::rules {
namespace {

// Losses may be too far apart for job.restart_window, for example if each restore takes long and ends in a loss. So a
// job that hasn't got further since this many rollbacks, besides job.max_restarts, fails too.
constexpr std::uint32_t kMostFruitless = 100;

}  // namespace

Verdict after_loss(const JobFacts& job, const Cause& cause, Loss loss) {
  if (job.condition.has_ended() || job.stage.traits().has_closed || job.stage.is(Stage::kQueued)) return Stay{};
  // A job that finishes early rolls back, as any job does. It finishes when it trains again.
  if (job.condition.is_stopping() && !job.condition.finishes_early())
    return Close{JobState::kStopped,
                 job.condition.end_reason() + " before the workers had finished their step: " + to_string(cause)};
  return Recover{cause, loss};
}

Verdict recovery(const JobFacts& job, const Cause& cause, Loss loss, std::size_t losses) {
  const std::uint32_t most = job.setup.config().job.max_restarts;
  if (losses > most) return Fail{views::too_many_losses(job, ErrorCode::kFailed, cause, losses), cause.task};
  if (job.generation.owners().empty()) return StartOver{};
  const std::size_t fruitless = job.rollbacks.fruitless_losses();
  const bool is_fruitless = (loss == Loss::kCounts || loss == Loss::kSpared) && fruitless >= most + kMostFruitless;
  if (is_fruitless)
    return Fail{Error{ErrorCode::kFailed, cause.reason + "; the job has rolled back " + std::to_string(fruitless) +
                                              " times without getting further"},
                cause.task};
  return RollBack{cause, loss};
}

}  // namespace disttrain::chiefd::rules
