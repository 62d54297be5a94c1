#include "transport/stream/offered_memory.h"

#include <string>

namespace disttrain::transport {

Status OfferedMemory::offer(MutableBytes answers, const std::optional<Arena::Place>& at, wire::PayloadPlace& place) {
  if (!at) {
    // The memory of the earlier offer may be in use now.
    if (!bytes_.empty()) return fail(ErrorCode::kUnavailable, "can't offer other memory to the peer for its answers");
    return {};
  }
  place.offered_block = at->block;
  place.offered_offset = at->offset;
  place.offered_bytes = answers.size();
  bytes_ = answers;
  return {};
}

Result<PeerMemory> OfferedMemory::placed(const wire::PayloadPlace& place, std::uint64_t payload_bytes) const {
  if (place.offset <= bytes_.size() && payload_bytes <= bytes_.size() - place.offset)
    return PeerMemory{.bytes = bytes_.subspan(place.offset, payload_bytes)};
  return fail(ErrorCode::kData, "the peer has put " + std::to_string(payload_bytes) + " bytes at byte " +
                                    std::to_string(place.offset) + " of memory that wasn't offered to it");
}

}  // namespace disttrain::transport
