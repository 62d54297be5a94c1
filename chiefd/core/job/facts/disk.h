// Since when the chief's own disk hasn't written the oldest record of a job.
#pragma once

#include <optional>

#include "chiefd/core/events.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct DiskFacts {
  Instant ticked;                   // the last tick
  std::optional<Ticket> unwritten;  // the oldest record that isn't durable yet
  Instant unwritten_since;
};

}  // namespace disttrain::chiefd
