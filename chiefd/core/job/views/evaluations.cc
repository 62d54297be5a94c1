#include "chiefd/core/job/views/evaluations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/job/views/members.h"
#include "common/mutant.h"

namespace disttrain::chiefd::views {

// True if the job may give orders and take results.
bool is_at_work(const JobFacts& job) {
  const bool goes_on = !job.stage.traits().has_closed && !job.stage.is(Stage::kQueued);
  return goes_on && !job.condition.has_ended() && job.generation.described().has_value();
}

EvaluationRules rules_of(const JobFacts& job) {
  // Gathering has checked the rules of the model. A journal of another version may have another model.
  EvaluationRules rules = evaluation_rules(job.setup.config().evaluate, job.generation.described()->model.metrics)
                              .value_or(EvaluationRules{"loss", false, 0, 0});
  // A job that has done all its steps can't finish early any more.
  if (job.stage.is(Stage::kSettle) || job.stage.is(Stage::kFinalCut) || job.stage.is(Stage::kEvaluate))
    rules.stop_after = 0;
  return rules;
}

const KeptCheckpoint* find_kept(const JobFacts& job, const std::string& path) {
  const auto found = std::find_if(job.evaluations.kept.begin(), job.evaluations.kept.end(),
                                  [&path](const KeptCheckpoint& kept) { return kept.path == path; });
  return found == job.evaluations.kept.end() ? nullptr : &*found;
}

bool is_waiting(const JobFacts& job, const KeptCheckpoint& checkpoint) {
  return !job.evaluations.book.has_evaluated(checkpoint);
}

std::size_t waiting(const JobFacts& job) {
  if (!job.setup.uses_evaluators()) return 0;
  return static_cast<std::size_t>(std::count_if(job.evaluations.kept.begin(), job.evaluations.kept.end(),
                                                [&job](const KeptCheckpoint& kept) { return is_waiting(job, kept); }));
}

// Checkpoints of an earlier job in the same folder may be among the best. So those that were there are kept until they
// are evaluated.
std::vector<std::string> pinned(const JobFacts& job) {
  std::vector<std::string> paths;
  if (job.setup.config().evaluate.keep_best == 0 || DISTTRAIN_MUTANT(kPinForgotten)) return paths;
  for (const BestCheckpoint& best : job.evaluations.book.record().best) paths.push_back(best.checkpoint.path);
  if (!job.setup.uses_evaluators() || !job.evaluations.inherited) return paths;
  for (const KeptCheckpoint& kept : job.evaluations.kept)
    if (job.evaluations.inherited->count(kept.path) != 0 && is_waiting(job, kept)) paths.push_back(kept.path);
  return paths;
}

// After a restart of the chief, the checkpoints aren't known before the folder is open. If the folder couldn't be
// listed after a commit, the new checkpoint isn't known.
bool are_all_evaluated(const JobFacts& job) {
  return job.folder.is_open && job.evaluations.is_listed && waiting(job) == 0;
}

bool awaits_evaluators(const JobFacts& job) {
  return job.evaluations.awaits_all && job.stage.is(Stage::kEvaluate);
}

std::vector<Member> awaited_evaluators(const JobFacts& job, const Tasks& tasks) {
  std::vector<Member> members;
  for (const auto& [id, task] : tasks.all())
    if (awaits_evaluators(job) && id.role == Role::kEvaluator) members.push_back(task.member);
  return members;
}

Instant newest_evaluation_work(const JobFacts& job, const Tasks& tasks) {
  Instant newest;
  for (const Member& member : awaited_evaluators(job, tasks)) {
    const Task* task = tasks.find(member.task);
    if (task->heartbeat.job == job.setup.id) newest = std::max(newest, task->worked);
  }
  return newest;
}

bool has_evaluated_last(const JobFacts& job) {
  const std::optional<EvaluationStatus>& newest = job.progress.evaluation();
  if (!job.setup.uses_evaluators() || !newest || newest->step != job.progress.step()) return false;
  return newest->final ||
         std::any_of(job.evaluations.kept.begin(), job.evaluations.kept.end(), [&job](const KeptCheckpoint& kept) {
           return kept.step == job.progress.step() && job.evaluations.book.has_evaluated(kept);
         });
}

}  // namespace disttrain::chiefd::views
