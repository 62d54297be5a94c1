// When a restarted chief goes on with a job that trains, and with which of its tasks.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// In stage kReclaim. Reclaim if all tasks are back, or all ps tasks and the time of the workers is over. Recover if the
// time of a ps is over, or that of the pacer to report the job's step. WaitAgain while the pacer can't report it.
Verdict reclaimed(const JobFacts& job, const Tasks& tasks, Instant now);

}  // namespace disttrain::chiefd::rules
