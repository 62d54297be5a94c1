#include "chiefd/core/job/views/absences.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/format_duration.h"

namespace disttrain::chiefd::views {

const char* key_of(Role role) {
  return role == Role::kPs ? "job.ps_timeout" : "job.workers_timeout";
}

std::optional<Duration> limit_of(const JobFacts& job, Role role) {
  const Duration limit = role == Role::kPs ? job.setup.config().job.ps_timeout : job.setup.config().job.workers_timeout;
  return limit == Duration::zero() ? std::nullopt : std::optional(limit);
}

std::string absence_limit_text(const JobFacts& job) {
  const Absence& wait = job.absences.current.front();
  const std::string key = key_of(wait.role);
  if (!wait.limit) return "the job waits until this is over (" + key + " sets no limit)";
  const bool is_extended = wait.since > job.absences.since.at(wait.role);
  Duration limit = *wait.limit;
  std::string more;
  if (wait.role == Role::kPs && job.stage.is(Stage::kRegather)) {
    const Instant regathered = job.rollbacks.current()->gathers_since + 2 * job.setup.timeouts.silent_ps;
    limit = std::max(limit, regathered - wait.since);
  } else if (wait.role == Role::kPs && !job.stage.is(Stage::kGather)) {
    // The ps may come back at first. Then other ps tasks get the time to take its shards (rules::overdue_absence).
    limit = std::max(limit, job.setup.timeouts.silent_ps);
    more = ", and up to " + format_duration(2 * job.setup.timeouts.silent_ps) +
           " more for other ps tasks to take the shards";
  }
  return "the job fails if " +
         std::string(is_extended ? "the workers that get ready make no progress for " : "this takes ") +
         format_duration(limit) + " (" + key + more + ")";
}

}  // namespace disttrain::chiefd::views
