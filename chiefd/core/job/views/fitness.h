// Which workers' processes may take part in a job. Each reason for a worker to stay away is weighed here, for every
// question that asks for it.
#pragma once

#include <cstddef>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

// REQUIRES of all functions: `task` is a worker.

// True if the job may give the worker work: the chief hears it, it isn't about to end, holds no other job, and isn't
// left out (Candidates::leave_out).
bool is_available(const JobFacts& job, const Task& task);
// True if the worker is available, reaches the owners of the shards, and wasn't lost too often.
bool may_train(const JobFacts& job, const Task& task, Instant now);
// True if the worker may train and lacks nothing, by what it said last.
bool may_start(const JobFacts& job, const Task& task, Instant now);
// True if the worker can be in the next generation: it is prepared, too. If lost workers are waited for, it may have
// been lost however often.
bool is_ready(const JobFacts& job, const Task& task, Instant now);
// True if the worker is there, though perhaps busy with another job, is neither left out nor was lost too often.
bool may_come(const JobFacts& job, const Task& task, Instant now);
// True if the process is there and can't take part. The next process of its task may.
bool is_barred(const JobFacts& job, const Task& task);

// The number of workers for which `question` returns true.
template <typename Question>
std::size_t count_workers(const Tasks& tasks, const Question& question) {
  std::size_t count = 0;
  for (const auto& [id, task] : tasks.all())
    if (id.role == Role::kWorker && question(task)) ++count;
  return count;
}

}  // namespace disttrain::chiefd::views
