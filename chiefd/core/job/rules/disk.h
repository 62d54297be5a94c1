// Handles a slow disk of the chief. Lease grants, rosters and fences are sent only when their records are durable, and
// the tasks wait for these messages. So while a record is late, no time limit of a task runs. When a record is late by
// half of job.stall_timeout, the workers are paused, because their own time limits would run out. When a record is late
// by Timeouts::setup, the job fails.
#pragma once

#include <string>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// "the chief's own disk has written no record for 20 s"
std::string unwritten_for(Duration late);
// `late`: for how long the disk hasn't written the job's oldest record. REQUIRES: the job doesn't wait for the record
// of its end.
Verdict late_disk(const JobFacts& job, Duration late);

}  // namespace disttrain::chiefd::rules
