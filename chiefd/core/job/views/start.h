// Which tasks a job needs to begin, and whether it may begin without some of its workers.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

std::vector<Member> workers_there(const JobFacts& job, const Tasks& tasks);
// True if the job can't begin because tasks of this role (kPs or kWorker) are absent.
bool lacks_at_start(const JobFacts& job, const Tasks& tasks, Role role);
// Returns the absent tasks that the job waits for: tasks of the cluster file, and tasks that hold a fixed rank
// (job.on_worker_loss = "wait") even if the file doesn't name them. If all of these are connected, but
// job.min_workers asks for more workers, returns one entry for all missing workers, with their number.
std::vector<Awaited> missing_at_start(const JobFacts& job, const Tasks& tasks);
// The workers with which the job begins, of these. One that was lost while the job started before takes part only if
// the job needs it. If lost workers are waited for, it needs each.
std::vector<Member> without_lost_before(const JobFacts& job, std::vector<Member> workers);
// The connected workers that aren't in the roster and haven't failed. Those that were lost before take part only if the
// job needs them besides `others` workers of the roster.
std::vector<Member> newcomers(const JobFacts& job, const Tasks& tasks, std::size_t others);
// True if the job may start with so many workers instead of its roster: no rank waits for another one.
bool may_start_with(const JobFacts& job, std::size_t workers);
// True if the job may start without this worker of its roster. Workers outside the roster count too if they may take
// part in the next start.
bool may_start_without(const JobFacts& job, const Tasks& tasks, Instant now, const Member& worker);
std::size_t others_in_roster(const JobFacts& job, const std::set<Member>& without);
std::size_t others_outside(const JobFacts& job, const Tasks& tasks, Instant now);
// How the loss of this worker counts if the job starts again without it. Until a generation trains, each task is
// spared once. So at most as many starts in a row are spared as there are workers.
Loss loss_at_start(const JobFacts& job, TaskId worker);

}  // namespace disttrain::chiefd::views
