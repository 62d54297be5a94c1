// The order by which a worker opens the job. A task gets the same order again if its connection was lost.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::views {

OpenJob order_to_open(const JobFacts& job, const Member& worker);

}  // namespace disttrain::chiefd::views
