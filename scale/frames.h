// The sizes of frames on the wire: the header, the control part as the real codec encodes it, and the payload. TCP's
// and IP's own headers aren't counted.
#pragma once

#include <cstdint>

#include "transport/wire/codec.h"

namespace disttrain::scale {

class FrameSizes {
 public:
  template <typename Message>
  std::uint64_t of(const Message& message, std::uint64_t payload_bytes = 0) {
    return wire::kHeaderBytes + wire::encode(message, scratch_).size() + payload_bytes;
  }

 private:
  wire::ScratchBuffer scratch_;
};

std::uint64_t frame_bytes(const Hello& hello);
std::uint64_t frame_bytes(const wire::HelloAnswer& answer);

}  // namespace disttrain::scale
