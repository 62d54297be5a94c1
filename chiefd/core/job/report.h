#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::report {

// The job's status without the state of its tasks. Cluster adds this state.
JobStatus status(const JobFacts& job, Instant now);
// A text about a training job: how many workers train, which are kept out and why, which links are broken, and why no
// checkpoint can be taken.
std::string training_reason(const JobFacts& job, Instant now);
std::string why_kept_out(const JobFacts& job, TaskId task, Instant now);
std::optional<std::uint64_t> reached_by(const JobFacts& job, const Member& member, const Heartbeat& heartbeat);
std::vector<Awaited> waits_for(const JobFacts& job, const Tasks& tasks, Instant now);

}  // namespace disttrain::chiefd::report
