// Questions about the end of a job, and about tasks that were told to end.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

// Returns a ps that owns shards and was told to end. The job must save its shards before the ps leaves. None if there
// is no such ps.
std::optional<TaskId> leaving_owner(const JobFacts& job, const Tasks& tasks);
EndRecord end_record(const JobFacts& job, Instant now);

}  // namespace disttrain::chiefd::views
