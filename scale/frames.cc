#include "scale/frames.h"

namespace disttrain::scale {

std::uint64_t frame_bytes(const Hello& hello) {
  return wire::kHeaderBytes + wire::encode(hello).size();
}

std::uint64_t frame_bytes(const wire::HelloAnswer& answer) {
  return wire::kHeaderBytes + std::visit([](const auto& a) { return wire::encode(a).size(); }, answer);
}

}  // namespace disttrain::scale
