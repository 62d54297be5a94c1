// How many of a listener's peers are there: each accepted socket holds a seat until it is closed, wherever it went.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace disttrain::transport {

// Counted by several loops. Shared by the listener and its connections, which may outlive it.
struct SeatCount {
  std::atomic<std::uint32_t> taken{0};
};

class Seat {
 public:
  Seat() = default;  // of nobody: a dialled connection
  explicit Seat(std::shared_ptr<SeatCount> count) : count_(std::move(count)) { ++count_->taken; }
  Seat(Seat&& other) noexcept = default;
  Seat& operator=(Seat&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~Seat() {
    if (count_) --count_->taken;
  }

 private:
  std::shared_ptr<SeatCount> count_;
};

}  // namespace disttrain::transport
