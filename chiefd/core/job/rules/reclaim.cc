#include "chiefd/core/job/rules/reclaim.h"

#include <algorithm>
#include <vector>

#include "chiefd/core/job/views/recovery.h"

namespace disttrain::chiefd::rules {
namespace {

// The job waits for the pacer to report its step.
Verdict late_pacer(const JobFacts& job, const Tasks& tasks, Instant now) {
  const Member& pacer = job.generation.pacer();
  if (!tasks.hears_both_ways(pacer)) return WaitAgain{now + job.setup.answer_limit()};
  if (now < *job.stage.deadline()) return Stay{};
  return Recover{{pacer.task, "it heartbeats, but didn't report the job's step in time"}};
}

}  // namespace

Verdict reclaimed(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (job.stage.awaits_anyone()) return late_pacer(job, tasks, now);
  const auto is_back = [&job](const Member& member) { return job.reclaim.is_back(member); };
  const std::vector<Member> ps = job.generation.holders();
  const auto away = std::find_if_not(ps.begin(), ps.end(), is_back);
  if (away != ps.end()) {
    // At a deadline that has passed, check_deadline() removes it. So if there is none, the time is over too.
    if (job.stage.deadline() && now < *job.stage.deadline()) return Stay{};
    return Recover{{away->task, "it was lost while the chief was away"}, views::loss_while_away(job, away->task)};
  }
  const bool has_all = std::all_of(job.workers.all().begin(), job.workers.all().end(), is_back);
  if (!has_all && now < job.reclaim.workers_until) return Stay{};
  return Reclaim{};
}

}  // namespace disttrain::chiefd::rules
