// Decides how a job goes on when the deadline of its stage has passed.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// If an awaited task makes progress with long work, the stage gets more time (Extend). Otherwise the stage ends, in
// most cases with a failure or a rollback of the job. REQUIRES: job.stage.is_overdue(now).
Verdict at_deadline(const JobFacts& job, const Tasks& tasks, Instant now);

}  // namespace disttrain::chiefd::rules
