// Says which tasks of a job reach which other tasks, judging by the links that are broken now (chiefd/core/links.h). An
// example with three workers:
//
//   1. worker/0 can't reach ps/1, but worker/1 and worker/2 can. So worker/0 has to leave the job.
//   2. Then worker/1 can't reach ps/1 either. Now most workers can't, so ps/1 counts as cut off, and the workers stay.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

// Returns the workers whose links count: the workers of the roster that aren't lost. While the job prepares its next
// generation (stage kRegather): all connected workers that can take work.
std::vector<TaskId> voters(const JobFacts& job, const Tasks& tasks);
// True if most workers can't reach the ps.
bool is_cut_off(const JobFacts& job, const Tasks& tasks, TaskId ps);
// True if the ps must get no shard, because most workers or another ps can't reach it. If two ps tasks can't reach
// each other, one of them is avoided: the ps with more broken links to other ps tasks. If both have equally many, the
// pacer is kept. If neither is the pacer, the ps with the larger id is avoided.
bool is_avoided(const JobFacts& job, const Tasks& tasks, TaskId ps);
bool reaches_owners(const JobFacts& job, TaskId worker);
// The broken links from a worker to owners of shards, as a text. Empty if the worker reaches all owners.
std::string links_of(const JobFacts& job, Instant now, TaskId worker);
// The links_of() of several workers, in one text. These are the workers whose broken links were reported as events.
std::string broken_links_text(const JobFacts& job, Instant now);

}  // namespace disttrain::chiefd::views
