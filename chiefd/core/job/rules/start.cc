#include "chiefd/core/job/rules/start.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/evaluation_book.h"
#include "chiefd/core/job/views/recovery.h"
#include "chiefd/core/job/views/start.h"

namespace disttrain::chiefd::rules {
namespace {

// "worker/1 (10.0.0.2:7120), worker/2 (10.0.0.3:7120)"
std::string with_addresses(const std::vector<Awaited>& missing, const Tasks& tasks) {
  std::string text;
  for (const Awaited& one : missing) {
    text += (text.empty() ? "" : ", ") + to_string({one});
    const Task* task = one.task ? tasks.find(*one.task) : nullptr;
    if (task != nullptr) text += " (" + task->hello.address + ")";
  }
  return text;
}

// "waiting for 2 of 5 tasks: worker/1, worker/2"
std::string waiting_for(const std::vector<Awaited>& missing, const Tasks& tasks) {
  const auto all = std::count_if(tasks.all().begin(), tasks.all().end(),
                                 [](const auto& entry) { return entry.first.role != Role::kEvaluator; });
  const std::string count =
      missing.front().task ? std::to_string(missing.size()) + " of " + std::to_string(all) + " tasks: " : "";
  return "waiting for " + count + to_string(missing);
}

}  // namespace

Verdict gathered(const JobFacts& job, const Tasks& tasks, Instant now) {
  const std::vector<Awaited> missing = views::missing_at_start(job, tasks);
  const std::vector<Member> workers = views::workers_there(job, tasks);
  if (missing.empty()) return Describe{views::without_lost_before(job, workers)};
  const bool is_enough =
      !views::lacks_at_start(job, tasks, Role::kPs) && !views::lacks_at_start(job, tasks, Role::kWorker);
  const std::optional<Instant>& since = job.start.complete_enough_at;
  if (is_enough && since && now - *since >= 2 * job.setup.timeouts.silent)
    return Describe{views::without_lost_before(job, workers), "began without " + with_addresses(missing, tasks)};
  return Await{waiting_for(missing, tasks), is_enough};
}

Verdict cannot_describe(const JobFacts& job, const Tasks& tasks) {
  const auto& failures = job.start.could_not_describe;
  std::vector<Member> others = job.workers.roster().members;
  std::erase(others, failures.back().first);
  const std::vector<Member> newcomers = views::newcomers(job, tasks, others.size());
  std::vector<Member> unasked = newcomers;
  if (failures.size() == 1) unasked.insert(unasked.begin(), others.begin(), others.end());
  others.insert(others.end(), newcomers.begin(), newcomers.end());
  const auto& [first, error] = failures.front();
  if (!views::may_start_with(job, others.size())) return Fail{error, first.task};
  std::sort(others.begin(), others.end());
  return AskOthers{std::move(others), std::move(unasked)};
}

Verdict found_at_describe(const JobFacts& job, const Finding& finding) {
  const Member& member = finding.member;
  const bool is_good = finding.what == Finding::What::kJoined || finding.what == Finding::What::kReturned;
  if (is_good || (member.task.role == Role::kWorker && !job.workers.is_in_roster(member))) return Stay{};
  // The job's data may have crashed the worker, and would then crash it again and again. A ps may come and go, too. So
  // these losses count for job.max_restarts.
  const bool may_repeat = finding.what == Finding::What::kLost && !finding.was_told_to_end &&
                          (job.stage.awaits(member) || member.task.role == Role::kPs);
  return GatherAgain{Cause{member.task, finding.why}, may_repeat};
}

Verdict lost_at_describe(const JobFacts& job, const Cause& cause, std::size_t losses) {
  if (losses > job.setup.config().job.max_restarts)
    return Fail{views::too_many_losses(job, ErrorCode::kUnavailable, cause, losses), cause.task};
  return StartOver{};
}

Verdict opened(const JobFacts& job) {
  const auto& failures = job.start.could_not_open;
  if (failures.empty()) return SetFirstRoster{};
  const bool is_spared = std::any_of(failures.begin(), failures.end(), [&job](const auto& failure) {
    return views::loss_at_start(job, failure.first.task) == Loss::kSpared;
  });
  const auto& [worker, failure] = *failures.begin();
  return StartWithOthers{{worker.task, failure.error.message}, is_spared ? Loss::kSpared : Loss::kCounts};
}

Verdict described(const JobFacts& job, const JobDescribed& described) {
  const JobConfig& config = job.setup.config();
  if (described.train_records == 0)
    return Fail{Error{ErrorCode::kData, "the data has no records: check data.files and data.records"}};
  if (!config.evaluate.files.empty() && described.evaluation_records == 0)
    return Fail{Error{ErrorCode::kData, "the evaluation data has no records: check evaluate.files"}};
  const Result<EvaluationRules> rules = evaluation_rules(config.evaluate, described.model.metrics);
  if (!rules) return Fail{rules.error()};
  return Stay{};
}

}  // namespace disttrain::chiefd::rules
