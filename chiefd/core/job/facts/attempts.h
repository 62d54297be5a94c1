// The attempt to take a checkpoint that a job makes now, and the clients that wait for a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "chiefd/core/attempts.h"
#include "chiefd/core/events.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct AttemptFacts {
  std::optional<Attempt> current;
  std::uint64_t last_number = 0;
  Instant final_until;  // until then the job tries to take the checkpoint after its last step

  // True if the shards apply nothing after the cut of the current attempt, because the attempt is for a ps that leaves.
  bool is_holding() const { return current && current->holds; }
  bool is_cutting() const { return current && current->phase == Attempt::Phase::kCut; }
};

// Those who have asked for a checkpoint now: clients (`disttrain checkpoint save`), and a worker's trainer, which gets
// no answer.
struct Savers {
  std::vector<ClientId> clients;
  bool is_worker_waiting = false;
  Instant until;  // at this time the clients are refused if no attempt has begun

  bool is_any() const { return !clients.empty() || is_worker_waiting; }
};

}  // namespace disttrain::chiefd
