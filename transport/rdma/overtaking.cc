#include "transport/rdma/overtaking.h"

#include <algorithm>

namespace disttrain::transport {

void RdmaOvertaking::note_slow(std::uint64_t at, std::uint64_t bytes) {
  if (slow_.size() < kMaxSlow) return slow_.push_back({at, at + bytes, kNotSent});
  Slow& last = slow_.back();  // stands for more than one answer from now on
  last = {std::min(last.begin, at), std::max(last.end, at + bytes), kNotSent};
}

void RdmaOvertaking::note_all_sent(std::uint64_t sent) {
  for (Slow& one : slow_)
    if (one.read_with == kNotSent) one.read_with = sent;
}

bool RdmaOvertaking::may_overtake(std::uint64_t at, std::uint64_t bytes, std::uint64_t read) {
  std::erase_if(slow_, [read](const Slow& one) { return one.read_with <= read; });
  return std::ranges::none_of(slow_, [&](const Slow& one) { return at < one.end && one.begin < at + bytes; });
}

}  // namespace disttrain::transport
