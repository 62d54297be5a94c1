// Decides how a job goes on when a task is silent or lost, at each stage. While a ps is silent the workers pause and
// the job waits for the ps. A rollback would lose the training since the newest checkpoint, so the job waits about as
// long as this training took. The loss of a ps leads to a rollback. After the loss of a worker the other workers go on.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// A ps that owns shards is silent or gone.
Verdict lost_owner(const JobFacts& job, const Finding& finding);
// Rolls the job back if a ps has been silent for too long.
Verdict silent_too_long(const JobFacts& job, const Tasks& tasks, Instant now);
// A worker of the job is silent or gone.
Verdict lost_worker(const JobFacts& job, const Tasks& tasks, Instant now, const Finding& finding);

}  // namespace disttrain::chiefd::rules
