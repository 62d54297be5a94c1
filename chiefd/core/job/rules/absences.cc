#include "chiefd/core/job/rules/absences.h"

#include <string>

#include "chiefd/core/job/views/absences.h"
#include "chiefd/core/job/views/recovery.h"
#include "chiefd/core/job/views/start.h"
#include "chiefd/core/job/views/workers.h"
#include "common/format_duration.h"

namespace disttrain::chiefd::rules {

std::vector<Role> lacking(const JobFacts& job, const Tasks& tasks, Instant now) {
  std::vector<Role> roles;
  const auto add = [&roles](bool lacks, Role role) {
    if (lacks) roles.push_back(role);
  };
  if (job.stage.is(Stage::kGather)) {
    add(views::lacks_at_start(job, tasks, Role::kPs), Role::kPs);
    add(views::lacks_at_start(job, tasks, Role::kWorker), Role::kWorker);
  } else if (job.stage.is(Stage::kRegather)) {
    add(views::lacks_ps(job, tasks), Role::kPs);
    add(!views::missing_workers(job, tasks, now).empty(), Role::kWorker);
  } else {
    add(job.pauses.is_any_silent(), Role::kPs);
    add(job.stage.is(Stage::kTrain) && job.pauses.is_short(), Role::kWorker);
  }
  return roles;
}

Verdict overdue_absence(const JobFacts& job, const Tasks& tasks, Instant now) {
  for (const Absence& wait : job.absences.current) {
    if (!wait.limit || now - wait.since < *wait.limit) continue;
    // A silent ps isn't lost yet. When its time is over, losses.h rolls the job back. Other ps tasks then get the
    // time to take its shards.
    const bool is_silence = wait.role == Role::kPs && !job.stage.is(Stage::kGather) && !job.stage.is(Stage::kRegather);
    const bool may_move = wait.role == Role::kPs && job.stage.is(Stage::kRegather) &&
                          now - job.rollbacks.current()->gathers_since < 2 * job.setup.timeouts.silent_ps;
    if (is_silence || may_move) continue;
    const std::string limit = " for " + format_duration(*wait.limit) + " (" + views::key_of(wait.role) + ")";
    const auto fail = [](const std::string& why, std::optional<TaskId> root) {
      return Fail{Error{ErrorCode::kUnavailable, why}, root};
    };
    if (const auto& rollback = job.rollbacks.current())
      return fail(rollback->cause.reason + "; " + rollback->shortage + limit, rollback->cause.task);
    if (job.stage.is(Stage::kGather))
      return fail(job.condition.reason() + limit + ": start the missing tasks, or lower job.min_workers", std::nullopt);
    return fail(views::shortage(job, tasks, now) + limit, std::nullopt);
  }
  return Stay{};
}

}  // namespace disttrain::chiefd::rules
