// A tcp socket as a ByteChannel.
#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <memory>

#include "common/os/descriptor.h"
#include "transport/stream/byte_channel.h"
#include "transport/stream/connection.h"
#include "transport/stream/handler_memory.h"
#include "transport/tcp/options.h"

namespace disttrain::transport {

class TcpChannel final : public ByteChannel {
 public:
  // The socket is connected and doesn't block.
  TcpChannel(asio::io_context& loop, Descriptor socket) : socket_(loop, socket.release()) {}

  const char* wire() const override { return "tcp"; }
  Result<Read> read_some(std::span<const iovec> buffers) override;
  Result<std::size_t> write_some(std::span<const iovec> buffers) override;
  void wait_readable(std::shared_ptr<ByteChannelUser> user) override;
  void wait_writable(std::shared_ptr<ByteChannelUser> user) override;
  void close() override;
  std::unique_ptr<DetachedChannel> detach() override;

 private:
  asio::posix::stream_descriptor socket_;
  // The memory outlives the waits, because a wait keeps its user alive, and the user keeps the channel.
  HandlerMemory read_memory_;
  HandlerMemory write_memory_;
};

// What the connection over a socket needs to know: the peer, and whether payloads carry checksums. Sets a congestion
// control that fits a connection within one host.
StreamStart describe_socket(int socket, const TcpOptions& options, std::shared_ptr<Traffic> traffic);

}  // namespace disttrain::transport
