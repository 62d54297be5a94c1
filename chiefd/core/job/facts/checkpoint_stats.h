// The figures of a job's checkpoints, for the job's status and the metrics. A restart of the chief resets them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chiefd/core/attempts.h"
#include "chiefd/core/status.h"
#include "common/time.h"

namespace disttrain::chiefd {

class CheckpointStats {
 public:
  void note_committed(const Attempt& attempt, Instant now);
  void note_failure() { ++figures_.failures; }
  void note_restored(Duration took) { figures_.restore.observe(to_seconds(took)); }
  void note_bytes(std::uint64_t bytes) { figures_.bytes = bytes; }
  CheckpointFigures figures(Instant now) const;

 private:
  CheckpointFigures figures_;
  std::optional<Instant> committed_at_;  // when this chief committed its newest checkpoint
};

// Returns "1234 bytes in 20 ms; the longest that any shard was blocked by its copy: 0.1 ms, ...".
std::string describe_costs(const Attempt& attempt, Instant now);

}  // namespace disttrain::chiefd
