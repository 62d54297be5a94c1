// Says which tasks belong to a job: the ps tasks that own its shards, its workers, and the invited workers. Also says
// when they last made progress with long work, such as a restore or reading a data set (Heartbeat::work). The time
// limits for such work start from then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

// True if the member owns a shard, or is a worker that isn't lost.
bool uses(const JobFacts& job, const Member& member);
// All owners of shards, all workers of this generation (also lost ones), and all invited workers. Each is listed
// once.
std::vector<Member> all_members(const JobFacts& job);
// True if this worker was removed before the chief was restarted. Such a worker says that it holds the current
// generation, but isn't one of the job's workers. It can join only as another process.
bool was_removed_before(const JobFacts& job, const Tasks& tasks, const Member& worker);
std::set<TaskId> living_workers(const JobFacts& job);
// When the member last made progress. Instant() if the chief has seen no progress.
Instant worked_at(const JobFacts& job, const Tasks& tasks, const Member& member);
// The newest worked_at() of the members.
template <typename Members>
Instant newest_work(const JobFacts& job, const Tasks& tasks, const Members& members) {
  Instant newest;
  for (const Member& member : members) newest = std::max(newest, worked_at(job, tasks, member));
  return newest;
}
// The newest step that the chief has heard of. During a rollback: the step that the job had reached before the
// rollback.
Step reached(const JobFacts& job);

}  // namespace disttrain::chiefd::views
