// Decides what follows from the failures that tasks report, and which task is to blame. A task that can't reach another
// task may be the victim or the cause. So the chief probes all other tasks. It blames no task until it has heard from
// each of them or found it lost, or until it has waited long enough.
//
//   1. worker/0 reports that it lost ps/1. The chief probes all other tasks and waits.
//   2. If ps/1 is found lost, the job recovers from the loss of ps/1, and the chief drops the report.
//   3. If all other tasks have answered, the chief removes worker/0.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"
#include "common/messages/control.h"

namespace disttrain::chiefd::rules {

// A worker that was about to join has failed. The job goes on without this worker. `was_invited`: it was preparing;
// otherwise it was opening its channels.
Verdict failed_to_join(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from,
                       const TaskFailed& failed, bool was_invited);
// A task of the job has failed. Suspect, if another task may be the cause.
// REQUIRES: the task isn't about to join.
Verdict failed(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from, const TaskFailed& failed);
// True if the failure is one of the worker's own that counts in Faults, because its generation trains.
bool is_fault(const JobFacts& job, const Member& from, const TaskFailed& failed);
// The worker has failed by a fault that counts. Suspect, if another task may be the cause.
Verdict at_fault(const Member& from, const TaskFailed& failed, Faults::Verdict times);
// Lets the worker stay out that was just lost for a fault of its own, if the others are enough.
Verdict lost_for_own_fault(const JobFacts& job, const Member& from, const std::string& reason, Faults::Verdict times);

// True if the chief has heard from all other tasks since the complaint, or if the time for this is over.
bool is_settled(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from, Instant since);
// All other tasks are healthy.
// REQUIRES: is_settled().
Verdict settled(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from, const std::string& why);

}  // namespace disttrain::chiefd::rules
