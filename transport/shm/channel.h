// One end of a shm connection as a ByteChannel. Bytes go through rings in shared memory. An eventfd wakes an end that
// waits. A Unix socket carries descriptors; when it closes, the peer has closed the connection or died.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "transport/shm/blocks.h"
#include "transport/shm/ring.h"
#include "transport/stream/byte_channel.h"

namespace disttrain::transport {

class ShmChannel final : public ByteChannel {
 public:
  // The end that has dialled. `socket` is connected and doesn't block. Sends the descriptors to the peer with the first
  // bytes that are written, so that a hello is complete when it arrives.
  static Result<std::unique_ptr<ShmChannel>> dialled(asio::io_context& loop, Descriptor socket);
  // The end that has accepted. Until the peer's descriptors arrive, nothing can be read.
  static std::unique_ptr<ShmChannel> accepted(asio::io_context& loop, Descriptor socket);

  struct Link;
  class Core;
  class Detached;
  explicit ShmChannel(std::shared_ptr<Core> core);
  ~ShmChannel() override;

  const char* wire() const override { return "shm"; }
  Result<Read> read_some(std::span<const iovec> buffers) override;
  Result<std::size_t> write_some(std::span<const iovec> buffers) override;
  void wait_readable(std::shared_ptr<ByteChannelUser> user) override;
  void wait_writable(std::shared_ptr<ByteChannelUser> user) override;
  void close() override;
  std::unique_ptr<DetachedChannel> detach() override;
  void share(const Arena& arena) override;
  std::optional<wire::PayloadPlace> place(const OutgoingFrame& frame) override;
  Result<PeerMemory> take(const wire::PayloadPlace& place, std::uint64_t payload_bytes) override;

 private:
  // Operations on the loop share the core. One that ends after close() sees that the core is closed.
  const std::shared_ptr<Core> core_;
};

}  // namespace disttrain::transport
