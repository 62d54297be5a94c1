// Checks the invariants between the facts of a job. They hold after every step of the core. A violation is a bug.
#pragma once

#include <optional>
#include <string>

namespace disttrain::chiefd {

struct JobFacts;

// "J4: job 3: ...": the first broken invariant. None: all hold.
std::optional<std::string> broken_invariant(const JobFacts& job);

}  // namespace disttrain::chiefd
