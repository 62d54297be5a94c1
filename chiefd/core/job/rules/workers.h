// Decides which workers leave and join while a job trains, and whether the job has the workers that it needs: at least
// job.min_workers or, with job.on_worker_loss = "wait", every rank. Without these workers the job pauses.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// Whether a prepared worker joins the roster now: Join, LetIn (not yet), KeepOut, or Stay.
Verdict joins(const JobFacts& job, const Tasks& tasks, Instant now, const Member& worker);
// Whether a job that trains pauses for missing workers, which may fail it, or pauses no longer.
Verdict quorum(const JobFacts& job, const Tasks& tasks, Instant now);
// Workers have finished although records are left. ShareRest, when they have for so long that the pacer has reported
// the last steps. REQUIRES: JobFacts::idle_since.
Verdict finished_too_early(const JobFacts& job, Instant now);
// Settles the job if all workers have finished, or if neither a worker nor any work is left.
Verdict training_end(const JobFacts& job);

}  // namespace disttrain::chiefd::rules
