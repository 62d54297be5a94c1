// How a job goes on after a loss that ends its generation: it closes, fails, gathers its tasks again, or rolls back.
#pragma once

#include <cstddef>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// Whether the job rolls back at all: Stay (the job is ending), Close, or Recover.
Verdict after_loss(const JobFacts& job, const Cause& cause, Loss loss);
// `losses`: how many losses within job.restart_window count, this one included; 0: this one doesn't count. The verdict
// is Fail, StartOver if no shard is placed yet, or RollBack. REQUIRES: after_loss() is Recover.
Verdict recovery(const JobFacts& job, const Cause& cause, Loss loss, std::size_t losses);

}  // namespace disttrain::chiefd::rules
