// Questions about the evaluations of a job's checkpoints. The checkpoints that wait for an evaluation are those in the
// job's folder that the book doesn't have. So retention bounds their number, and nothing is lost when an evaluator or
// the chief is restarted.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

bool is_at_work(const JobFacts& job);
EvaluationRules rules_of(const JobFacts& job);
const KeptCheckpoint* find_kept(const JobFacts& job, const std::string& path);
bool is_waiting(const JobFacts& job, const KeptCheckpoint& checkpoint);
// The number of checkpoints that wait for an evaluation or are being evaluated.
std::size_t waiting(const JobFacts& job);
// The paths of the checkpoints that retention mustn't remove.
std::vector<std::string> pinned(const JobFacts& job);
bool are_all_evaluated(const JobFacts& job);
// True while the job waits for evaluators in stage kEvaluate.
bool awaits_evaluators(const JobFacts& job);
std::vector<Member> awaited_evaluators(const JobFacts& job, const Tasks& tasks);
// When an evaluator last made progress with this job.
Instant newest_evaluation_work(const JobFacts& job, const Tasks& tasks);
// True if the parameters of the job's last step were evaluated.
bool has_evaluated_last(const JobFacts& job);

}  // namespace disttrain::chiefd::views
