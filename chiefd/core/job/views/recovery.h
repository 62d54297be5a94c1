// Which ps tasks and workers the next generation of a job that rolls back needs, and which of them are missing.
// REQUIRES of all functions that return missing or late tasks: the job rolls back.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

Error too_many_losses(const JobFacts& job, ErrorCode code, const Cause& cause, std::size_t times);
std::vector<Awaited> missing_ps(const JobFacts& job, const Tasks& tasks);
// True if the job can't go on because ps tasks are away, or have too little memory.
bool lacks_ps(const JobFacts& job, const Tasks& tasks);
std::vector<Awaited> missing_workers(const JobFacts& job, const Tasks& tasks, Instant now);
std::vector<Awaited> late_workers(const JobFacts& job, const Tasks& tasks, Instant now);
// True if the workers that reach all current owners of shards, and may take part, are enough for training.
bool can_train_with(const JobFacts& job, const Tasks& tasks, Instant now);
// The least number of workers that the job trains with.
std::size_t fewest_workers(const JobFacts& job);
Loss loss_while_away(const JobFacts& job, TaskId task);

}  // namespace disttrain::chiefd::views
