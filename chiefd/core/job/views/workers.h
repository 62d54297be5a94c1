// Which workers a job that trains needs, which may take part, and why others may not.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

bool has_work_for(const JobFacts& job, TaskId worker);
std::vector<Member> roster_with(const JobFacts& job, const Member& worker);
std::string lost_too_often(const JobFacts& job, TaskId worker, Instant now);
std::string no_place_for(const JobFacts& job, const Tasks& tasks, std::size_t workers);
std::vector<Owner> ps_to_reach(const Tasks& tasks);
// The workers that the job lacks. Empty if the job can train, or if no work is left.
std::vector<Awaited> missing_in_training(const JobFacts& job, const Tasks& tasks);
// Returns why the job can't train with the workers that it has. Empty if it can.
std::string shortage(const JobFacts& job, const Tasks& tasks, Instant now);
// If too few of the known workers may take part, because the others were lost too often or are left out, returns one
// of those. If ranks are fixed, returns a rank's worker that is left out or, while the job trains, a missing one that
// was lost too often: the job would wait for it although it may not come back.
std::optional<TaskId> last_hope(const JobFacts& job, const Tasks& tasks, Instant now);
// Why the job fails, and which worker is to blame.
struct Blame {
  Error error;
  TaskId task;
};
// Why the job waits in vain for workers: last_hope() may not take part. None: some worker may come.
std::optional<Blame> in_vain(const JobFacts& job, const Tasks& tasks, Instant now);
// Returns true if enough other workers are there that may take part.
bool can_do_without(const JobFacts& job, const Tasks& tasks, TaskId worker, Instant now);
bool waits_for_finished(const JobFacts& job);
// True if a worker is evaluating. The other workers may wait for it.
bool is_evaluating(const JobFacts& job, const Tasks& tasks);
bool holds_workers(const JobFacts& job, const Tasks& tasks);

// The ps that owes an answer for the fence: the owner of a shard, or the pacer.
const Member& debtor_of(const JobFacts& job, const Fence& fence);

}  // namespace disttrain::chiefd::views
