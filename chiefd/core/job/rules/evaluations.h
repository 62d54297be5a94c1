// Which evaluator evaluates which checkpoint, and when the job stops waiting for evaluators.
#pragma once

#include <utility>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// How often the evaluation of a checkpoint may fail, and how many evaluators with an order may be lost while the job
// waits for them at its end.
inline constexpr std::uint32_t kMostEvaluationFailures = 3;

// The checkpoints that free evaluators get now, the oldest first.
std::vector<std::pair<Member, KeptCheckpoint>> new_orders(const JobFacts& job, const Tasks& tasks, Instant now);
// For how long an evaluator may make no progress with its order.
Duration patience_with_evaluator(const JobFacts& job);
// At the job's end: FinishEvaluation if all checkpoints are evaluated, GiveUpEvaluators if nobody will, otherwise Stay.
Verdict evaluators_at_end(const JobFacts& job, const Tasks& tasks, Instant now);

}  // namespace disttrain::chiefd::rules
