// Counts the peers of a listener. Each accepted socket holds a slot until the socket is closed, also after it has moved
// to another loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace disttrain::transport {

// The number of slots that are taken. The listener and its connections share it, because they run on several loops, and
// a connection may outlive the listener.
struct PeerCount {
  std::atomic<std::uint32_t> taken{0};
};

class PeerSlot {
 public:
  PeerSlot() = default;  // takes no slot, for a connection that was dialled
  explicit PeerSlot(std::shared_ptr<PeerCount> count) : count_(std::move(count)) { ++count_->taken; }
  PeerSlot(PeerSlot&& other) noexcept = default;
  PeerSlot& operator=(PeerSlot&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~PeerSlot() {
    if (count_) --count_->taken;
  }

 private:
  std::shared_ptr<PeerCount> count_;
};

}  // namespace disttrain::transport
