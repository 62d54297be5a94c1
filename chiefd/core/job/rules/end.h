// How a job ends that a client stops, and which tasks that were told to end may leave.
#pragma once

#include <string>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// A client stops the job: Stay (it ends already), Release (it is in the queue), Close, or StopSteps.
Verdict stopped_by_client(const JobFacts& job, const std::string& reason);
// True if the task may leave. False while the job still needs the task, for example until its shards are saved.
bool may_go(const JobFacts& job, const Member& member);

}  // namespace disttrain::chiefd::rules
