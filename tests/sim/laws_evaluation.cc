// The laws of evaluations: see laws.h.
#include <algorithm>

#include "common/checkpoint/job_folder.h"
#include "tests/sim/laws.h"

namespace disttrain::sim {

void Laws::evaluated(JobId job, const std::string& path, Step step) {
  evaluated_[job].insert(path);
  evaluated_steps_[job].insert(step);
}

void Laws::notes_evaluations(const chiefd::EvaluationsRecord& record) {
  const auto& steps = evaluated_steps_[record.job];
  const auto newer = static_cast<std::size_t>(
      record.best_value ? std::distance(steps.upper_bound(record.best_step), steps.end()) : steps.size());
  if (record.without_progress > newer)
    violated("I33: " + std::to_string(record.without_progress) + " evaluations count as without progress since step " +
             std::to_string(record.best_step.value) + ", but only " + std::to_string(newer) +
             " newer steps were evaluated");
}

// A commit of the same step sets a damaged checkpoint aside.
std::vector<std::string> Laws::pins_there(const chiefd::EvaluationsRecord& record) const {
  std::vector<std::string> paths;
  for (const chiefd::BestCheckpoint& best : record.best)
    if (damaged_.count(best.checkpoint.path) == 0 &&
        checkpoint::open_checkpoint(jobs_.disk->truth(), best.checkpoint.path))
      paths.push_back(best.checkpoint.path);
  return paths;
}

void Laws::pins_stay(const std::vector<std::string>& pins) {
  for (const std::string& path : pins)
    if (!checkpoint::open_checkpoint(jobs_.disk->truth(), path))
      violated("I32: retention removed " + path + ", although it is one of the best checkpoints");
}

void Laws::evaluates_no_more(JobId job, const std::string& path) {
  given_up_[job].insert(path);
}

void Laws::has_evaluated_all(JobId job, const JobConfig& config) {
  if (jobs_.cluster.evaluators.empty() || config.checkpoint.directory.empty() || config.evaluate.files.empty()) return;
  if (jobs_.disk->has_lied() || was_any_damaged() || given_up_[job].count("") != 0) return;
  for (const std::string& path : committed_[job]) {
    if (evaluated_[job].count(path) != 0 || given_up_[job].count(path) != 0) continue;
    if (checkpoint::open_checkpoint(jobs_.disk->truth(), path))
      violated("I31: the job has finished, but its checkpoint " + path + " wasn't evaluated");
  }
}

}  // namespace disttrain::sim
