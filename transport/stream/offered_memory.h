// The memory of this process into which the peer may put its answers. The channels of shm and rdma use this class.
#pragma once

#include <optional>

#include "transport/stream/byte_channel.h"

namespace disttrain::transport {

class OfferedMemory {
 public:
  // True if the frame offers other memory than the frames before it.
  bool must_offer(const OutgoingFrame& frame) const {
    return !frame.answers.empty() && (frame.answers.data() != bytes_.data() || frame.answers.size() != bytes_.size());
  }
  // Describes the offer in `place`. `at` is where `answers` are in a block that the peer knows; empty: the peer can't
  // know the block now. Then this fails if the peer would go on writing to the memory of an earlier offer.
  Status offer(MutableBytes answers, const std::optional<Arena::Place>& at, wire::PayloadPlace& place);
  // The payload that the peer has put into the memory. kData: the peer names bytes that aren't offered to it.
  Result<PeerMemory> placed(const wire::PayloadPlace& place, std::uint64_t payload_bytes) const;

 private:
  MutableBytes bytes_;
};

}  // namespace disttrain::transport
