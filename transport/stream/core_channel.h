// A ByteChannel whose operations on the loop share its core. An operation that ends after close() sees that the core is
// closed. The core has the functions of ByteChannel, but none of them is virtual, and kWire, the name of its wire.
#pragma once

#include <memory>
#include <utility>

#include "transport/stream/byte_channel.h"

namespace disttrain::transport {

template <typename Core>
class CoreChannel final : public ByteChannel {
 public:
  explicit CoreChannel(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~CoreChannel() override { core_->close(); }

  const char* wire() const override { return Core::kWire; }
  Result<Read> read_some(std::span<const iovec> buffers) override { return core_->read_some(buffers); }
  Result<std::size_t> write_some(std::span<const iovec> buffers) override { return core_->write_some(buffers); }
  void wait_readable(std::shared_ptr<ByteChannelUser> user) override { core_->wait_readable(std::move(user)); }
  void wait_writable(std::shared_ptr<ByteChannelUser> user) override { core_->wait_writable(std::move(user)); }
  void close() override { core_->close(); }
  std::unique_ptr<DetachedChannel> detach() override { return core_->detach(); }
  void share(const Arena& arena) override { core_->share(arena); }
  std::optional<wire::PayloadPlace> place(const OutgoingFrame& frame) override { return core_->place(frame); }
  Result<PeerMemory> take(const wire::PayloadPlace& place, std::uint64_t payload_bytes) override {
    return core_->take(place, payload_bytes);
  }
  void fetch(MutableBytes landing, std::shared_ptr<ByteChannelUser> user) override {
    core_->fetch(landing, std::move(user));
  }

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace disttrain::transport
