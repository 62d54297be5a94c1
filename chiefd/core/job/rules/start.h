// When a job begins, and with which workers.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"
#include "common/messages/control.h"

namespace disttrain::chiefd::rules {

// In stage kGather: Describe if enough tasks are connected, otherwise Await. The job begins as soon as all tasks of the
// cluster file are connected. It can also begin with every ps, every worker with a fixed rank, and job.min_workers
// workers. When these are connected, the job waits only two heartbeat timeouts longer for the other tasks. At its first
// start, a job of `disttrain up` also needs as many workers as `up` starts. Without this rule the job would begin with
// whichever of these workers come first, and its results would differ from run to run.
Verdict gathered(const JobFacts& job, const Tasks& tasks, Instant now);
// In stage kDescribe: the newest of StartFacts::could_not_describe has failed. AskOthers, or Fail if too few workers
// are left. The cause may be the job, which then fails at each worker, or the worker alone, which may lack memory, a
// device, a library or the data. So all other workers are asked at once, also those that have come meanwhile. They need
// the data and the model anyway.
Verdict cannot_describe(const JobFacts& job, const Tasks& tasks);
// In stage kDescribe: a task has come or gone. GatherAgain if the job counted on it. At this stage no task holds
// anything of the job.
Verdict found_at_describe(const JobFacts& job, const Finding& finding);
// The verdict found_at_describe() has counted the loss: `losses` within job.restart_window; 0: it doesn't count.
// StartOver, or Fail after too many.
Verdict lost_at_describe(const JobFacts& job, const Cause& cause, std::size_t losses);
// In stage kOpen: each worker has opened the job or can't take part. SetFirstRoster or StartWithOthers.
Verdict opened(const JobFacts& job);
// Fails the job if the data or the metrics aren't what it needs.
Verdict described(const JobFacts& job, const JobDescribed& described);

}  // namespace disttrain::chiefd::rules
