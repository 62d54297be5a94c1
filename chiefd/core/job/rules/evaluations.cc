#include "chiefd/core/job/rules/evaluations.h"

#include <algorithm>
#include <string>

#include "chiefd/core/job/views/evaluations.h"

namespace disttrain::chiefd::rules {
namespace {

// If no evaluator is connected at the job's end, the job waits for one for this many heartbeat timeouts.
constexpr int kPatienceWithNone = 30;

bool may_order(const JobFacts& job, const KeptCheckpoint& checkpoint, Instant now) {
  const auto& orders = job.evaluations.orders;
  const bool is_ordered = std::any_of(
      orders.begin(), orders.end(), [&checkpoint](const auto& order) { return order.second.checkpoint == checkpoint; });
  const auto failed = job.evaluations.failures.find(checkpoint.path);
  const bool may_try = failed == job.evaluations.failures.end() || now >= failed->second.next_try;
  return views::is_waiting(job, checkpoint) && !is_ordered && may_try;
}

}  // namespace

std::vector<std::pair<Member, KeptCheckpoint>> new_orders(const JobFacts& job, const Tasks& tasks, Instant now) {
  std::vector<std::pair<Member, KeptCheckpoint>> orders;
  if (!views::is_at_work(job) || !job.setup.uses_evaluators()) return orders;
  auto kept = job.evaluations.kept.begin();
  for (const auto& [id, task] : tasks.all()) {
    if (id.role != Role::kEvaluator || !task.takes_work() || job.evaluations.has_order(task.member)) continue;
    while (kept != job.evaluations.kept.end() && !may_order(job, *kept, now)) ++kept;
    if (kept == job.evaluations.kept.end()) return orders;
    orders.emplace_back(task.member, *kept++);
  }
  return orders;
}

Duration patience_with_evaluator(const JobFacts& job) {
  return std::max(job.setup.timeouts.setup, kEvaluationPatience * job.setup.config().job.stall_timeout);
}

Verdict evaluators_at_end(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (!views::awaits_evaluators(job) || job.evaluations.listing) return Stay{};
  if (views::are_all_evaluated(job)) return FinishEvaluation{};
  const std::vector<Member> all = views::awaited_evaluators(job, tasks);
  const bool is_any_there = std::any_of(all.begin(), all.end(),
                                        [&tasks](const Member& member) { return tasks.find(member.task)->is_there(); });
  if (!is_any_there && now - job.evaluations.awaits_since >= kPatienceWithNone * job.setup.timeouts.silent)
    return GiveUpEvaluators{"no evaluator is connected"};
  if (job.evaluations.lost_at_end >= kMostEvaluationFailures)
    return GiveUpEvaluators{"evaluators were lost " + std::to_string(job.evaluations.lost_at_end) + " times"};
  return Stay{};
}

}  // namespace disttrain::chiefd::rules
