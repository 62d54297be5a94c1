// Two listeners at one address, which peers reach in two ways.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "transport/connection.h"

namespace disttrain::transport {

class TwoListeners final : public Listener {
 public:
  // `second` may be null.
  TwoListeners(std::unique_ptr<Listener> first, std::unique_ptr<Listener> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  const std::string& address() const override { return first_->address(); }
  std::uint64_t refused() const override { return first_->refused() + (second_ ? second_->refused() : 0); }

 private:
  const std::unique_ptr<Listener> first_;
  const std::unique_ptr<Listener> second_;
};

}  // namespace disttrain::transport
