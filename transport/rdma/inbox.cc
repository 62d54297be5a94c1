#include "transport/rdma/inbox.h"

#include <algorithm>
#include <cstring>

namespace disttrain::transport {

void RdmaInbox::push(std::uint32_t slot, Bytes body) {
  messages_.push_back({slot, body});
  bytes_ += body.size();
}

std::size_t RdmaInbox::read(std::span<const iovec> buffers) {
  std::size_t total = 0;
  for (const iovec& buffer : buffers) {
    std::size_t filled = 0;
    while (filled < buffer.iov_len && read_ < messages_.size()) {
      Bytes& left = messages_[read_].left;
      const std::size_t n = std::min(left.size(), buffer.iov_len - filled);
      if (n > 0) std::memcpy(static_cast<std::byte*>(buffer.iov_base) + filled, left.data(), n);
      left = left.subspan(n);
      filled += n;
      if (left.empty()) ++read_;
    }
    total += filled;
  }
  bytes_ -= total;
  return total;
}

std::optional<std::uint32_t> RdmaInbox::take_free() {
  if (read_ == 0) return std::nullopt;
  const std::uint32_t slot = messages_.front().slot;
  messages_.pop_front();
  --read_;
  return slot;
}

}  // namespace disttrain::transport
