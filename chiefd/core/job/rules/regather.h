// These rules decide with which tasks the next generation of a job begins after a rollback. A job in stage kRegather
// asks them in this order, each time that a task comes or goes, and at each tick. REQUIRES of all: the job rolls back.
#pragma once

#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// Which ps tasks own the shards. KeepOwners: the same as before, if they are back. If some are still missing after
// Timeouts::silent_ps: PlaceAnew on any ps tasks. Otherwise LackPs.
Verdict next_owners(const JobFacts& job, const Tasks& tasks, Instant now);
// Returns Invite, LetIn or KeepOut for each connected worker to which the chief has something to say.
std::vector<Verdict> next_invitations(const JobFacts& job, const Tasks& tasks, Instant now);
// ChooseRoster if enough workers are ready. Otherwise Stay, or Fail if it would wait in vain.
Verdict next_roster(const JobFacts& job, const Tasks& tasks, Instant now);
// AwaitTasks if ps tasks (next_owners() has returned `owners`) or workers are missing; otherwise Stay.
Verdict next_missing(const JobFacts& job, const Tasks& tasks, Instant now, const Verdict& owners);
// MakePlaces, or AwaitTasks if the ps tasks lack memory for the fewest workers that the job trains with.
Verdict next_places(const JobFacts& job, const Tasks& tasks);
// The shards have memory for fewer workers than the roster has: KeepOut for those at its end, then ChooseRoster.
// Otherwise empty.
std::vector<Verdict> next_left_out(const JobFacts& job, const Tasks& tasks);
// BeginNext, or AwaitTasks for workers of a former chief that may come back, or Stay until the back-off is over.
Verdict next_begins(const JobFacts& job, const Tasks& tasks, Instant now);

}  // namespace disttrain::chiefd::rules
