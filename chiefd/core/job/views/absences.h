// How long a job may wait for absent tasks, and what its user is told of that.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

// The key of job.toml that limits the wait for tasks of this role.
const char* key_of(Role role);
std::optional<Duration> limit_of(const JobFacts& job, Role role);
// What ends the wait: "the job fails if this takes 120 s (job.ps_timeout)". REQUIRES: the job waits for
// somebody.
std::string absence_limit_text(const JobFacts& job);

}  // namespace disttrain::chiefd::views
