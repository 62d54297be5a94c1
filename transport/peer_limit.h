// How many peers a listener has: each accepted socket holds a slot until it is closed, whichever loop owns it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace disttrain::transport {

// Changed by several loops. Shared by the listener and its connections, which may outlive it.
struct PeerCount {
  std::atomic<std::uint32_t> taken{0};
};

class PeerSlot {
 public:
  PeerSlot() = default;  // holds no slot: for a dialled connection
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
