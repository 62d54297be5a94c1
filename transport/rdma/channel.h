// One end of an RDMA connection as a ByteChannel. Bytes go by SEND, through slots of registered memory. Payloads that
// the peer lends are fetched by RDMA READ, and answers go by RDMA WRITE into the memory that the peer has offered.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "common/result.h"
#include "transport/rdma/link.h"
#include "transport/stream/byte_channel.h"

namespace disttrain::transport {

class RdmaChannel final : public ByteChannel {
 public:
  // `link` has connected, or has accepted a connection.
  static std::unique_ptr<RdmaChannel> open(asio::io_context& loop, std::unique_ptr<RdmaLink> link);

  struct Moved;
  class Core;
  class Detached;
  explicit RdmaChannel(std::shared_ptr<Core> core);
  ~RdmaChannel() override;

  const char* wire() const override { return "rdma"; }
  Result<Read> read_some(std::span<const iovec> buffers) override;
  Result<std::size_t> write_some(std::span<const iovec> buffers) override;
  void wait_readable(std::shared_ptr<ByteChannelUser> user) override;
  void wait_writable(std::shared_ptr<ByteChannelUser> user) override;
  // If this end has shared no memory and reads none of the peer, what it has sent before still arrives.
  void close() override;
  std::unique_ptr<DetachedChannel> detach() override;
  void share(const Arena& arena) override;
  std::optional<wire::PayloadPlace> place(const OutgoingFrame& frame) override;
  Result<PeerMemory> take(const wire::PayloadPlace& place, std::uint64_t payload_bytes) override;
  void fetch(MutableBytes landing, std::shared_ptr<ByteChannelUser> user) override;

 private:
  // Operations on the loop share the core. One that ends after close() sees that the core is closed.
  const std::shared_ptr<Core> core_;
};

}  // namespace disttrain::transport
