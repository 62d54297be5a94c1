#include "transport/rdma/memory.h"

#include <string>

namespace disttrain::transport {

using wire::PayloadPlace;

Result<std::optional<PayloadPlace>> RdmaMemory::place(RdmaLink& link, const OutgoingFrame& frame, bool is_all_sent) {
  PayloadPlace place;
  bool is_used = false;
  if (offered_.must_offer(frame)) {
    const auto at = shared_.known(link, frame.answers, RdmaBlock::Use::kWrite);
    if (!at.has_value()) return tl::unexpected(at.error());
    if (Status offered = offered_.offer(frame.answers, *at, place); !offered) return tl::unexpected(offered.error());
    is_used = at->has_value();
  }
  if (frame.payload.empty() || frame.payload.size() > wire::kMaxPayloadBytes) {
  } else if (frame.lifetime == Payload::kFrozenUntilAnswered) {
    const auto at = shared_.known(link, frame.payload, RdmaBlock::Use::kRead);
    if (!at.has_value()) return tl::unexpected(at.error());
    if (at->has_value()) {
      place.kind = PayloadPlace::Kind::kLent;
      place.block = (*at)->block;
      place.offset = (*at)->offset;
      is_used = true;
    }
  } else if (frame.answer_at) {
    const Result<bool> put = answers_.put(link, frame.payload, *frame.answer_at, is_all_sent);
    if (!put.has_value()) return tl::unexpected(put.error());
    if (*put) {
      place.kind = PayloadPlace::Kind::kPlaced;
      place.offset = *frame.answer_at;
      is_used = true;
    }
  }
  return is_used ? std::optional(place) : std::nullopt;
}

Result<PeerMemory> RdmaMemory::take(RdmaLink& link, const PayloadPlace& place, std::uint64_t payload_bytes) {
  if (place.offered_bytes > 0) {
    const Result<RemoteBytes> region =
        link.peer_blocks().find(place.offered_block, RdmaBlock::Use::kWrite, place.offered_offset, place.offered_bytes);
    if (!region) return tl::unexpected(region.error());
    answers_.offered(*region);
  }
  if (place.kind == PayloadPlace::Kind::kInFrame) return PeerMemory();
  if (place.kind == PayloadPlace::Kind::kLent) {
    const Result<RemoteBytes> lent =
        link.peer_blocks().find(place.block, RdmaBlock::Use::kRead, place.offset, payload_bytes);
    if (!lent) return tl::unexpected(lent.error());
    if (payload_bytes == 0 || payload_bytes > wire::kMaxPayloadBytes)
      return fail(ErrorCode::kData, "the peer lends a payload of " + std::to_string(payload_bytes) + " bytes");
    fetch_.lent(*lent);
    return PeerMemory{.bytes = {}, .keeps = nullptr, .is_remote = true};
  }
  Result<PeerMemory> placed = offered_.placed(place, payload_bytes);
  has_moved_payload_ = has_moved_payload_ || placed.has_value();
  return placed;
}

void RdmaMemory::clear() {
  shared_.clear();
  answers_.clear();
  fetch_.clear();
}

}  // namespace disttrain::transport
