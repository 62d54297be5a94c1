// How a job ends after its last step or because of a client, and which tasks that were told to end may leave.
#pragma once

#include <string>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// A client stops the job: Stay (it ends already), Release (it is in the queue), Close, or StopSteps.
Verdict stopped_by_client(const JobFacts& job, const std::string& reason);
// A client kills the job: Stay (it ends already), Release, or Close.
Verdict killed_by_client(const JobFacts& job, const std::string& reason);
// The pacer has reported the last step, or an attempt of stage kFinalCut has ended: TakeLastCheckpoint, or EvaluateLast
// if there is nothing to save or all is saved.
Verdict after_last_step(const JobFacts& job);
// True if the task may leave. False while the job still needs the task, for example until its shards are saved.
bool may_go(const JobFacts& job, const Member& member);

}  // namespace disttrain::chiefd::rules
