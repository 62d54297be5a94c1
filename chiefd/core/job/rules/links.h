// Decides how a job goes on when a link between two of its tasks is broken.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// The task `from` has complained for long enough that it can't reach the ps `link.to`. Stays if the chief itself
// doesn't hear the ps, because losses.h applies then.
Verdict broken_link(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from, const Links::Link& link);
// Tells the operator what the chief does about a broken link. "": the operator need not know.
const char* consequence_of(const Verdict& verdict, const Member& from);

}  // namespace disttrain::chiefd::rules
