// Bounds the wait for tasks that are away: ps tasks, or workers that the job lacks. job.ps_timeout and
// job.workers_timeout say after how long the job fails. Without such a limit the job waits until the tasks are back, or
// until a user stops or kills it. A task that is there but doesn't answer isn't absent: deadlines.h bounds the
// wait for such a task.
#pragma once

#include <optional>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// The roles of the absent tasks without which the job can't go on.
std::vector<Role> lacking(const JobFacts& job, const Tasks& tasks, Instant now);
// Fails the job if one of its waits (AbsenceFacts::current) has lasted longer than its limit.
Verdict overdue_absence(const JobFacts& job, const Tasks& tasks, Instant now);

}  // namespace disttrain::chiefd::rules
