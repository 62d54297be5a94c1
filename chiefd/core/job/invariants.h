// What always holds between the parts of a job, after every step of the core. A violation is a bug of ours.
#pragma once

#include <optional>
#include <string>

namespace disttrain::chiefd {

struct JobParts;

// "J4: job 3: ...": the first that doesn't hold. None: all hold.
std::optional<std::string> broken_invariant(const JobParts& parts);

}  // namespace disttrain::chiefd
