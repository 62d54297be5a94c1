#include "chiefd/core/job/facts/worker_losses.h"

#include <cstdint>

namespace disttrain::chiefd {

std::size_t WorkerLosses::losses_of(TaskId worker, Instant now) const {
  const auto lost = lost_.find(to_string(worker));
  return lost == lost_.end() ? 0 : lost->second.count(now, window());
}

bool WorkerLosses::must_wait(TaskId worker, Instant joined, Instant now) const {
  const auto unlinked = unlinked_.find(worker);
  const std::size_t times =
      std::max(losses_of(worker, now), unlinked == unlinked_.end() ? 0 : unlinked->second.count(now, window()));
  return times > 1 && now - joined < back_off(static_cast<std::uint32_t>(times - 1));
}

}  // namespace disttrain::chiefd
