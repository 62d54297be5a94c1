// A connection over one tcp socket. It sends bytes straight from the caller's memory to the kernel, in one call if they
// fit. It receives payloads straight into their landing. Only the few KiB that arrive together with a header are
// copied.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "transport/connection.h"
#include "transport/peer_limit.h"
#include "transport/tcp/socket.h"
#include "transport/traffic.h"
#include "transport/wire/frame_reader.h"

namespace disttrain::transport {

// A socket that moves from one loop to another, with the bytes that were already read from it.
struct TcpSocket {
  Descriptor fd;
  wire::FrameReader reader;
  PeerSlot slot;
  std::string peer;
  std::uint64_t bytes_received = 0;
  std::shared_ptr<Traffic> traffic;
};

class TcpStream;

class TcpConnection final : public Connection {
 public:
  // Call it from the thread of `loop`.
  TcpConnection(asio::io_context& loop, TcpSocket socket, const TcpOptions& options);
  ~TcpConnection() override;

  void start(ConnectionHandler& handler) override;
  void send(const OutgoingFrame& frame) override;
  std::size_t queued_bytes() const override;
  void pause_receiving() override;
  void resume_receiving() override;
  void close() override;
  const std::string& peer() const override;
  std::uint64_t bytes_received() const override;
  std::uint64_t bytes_sent() const override;

 private:
  // Operations on the loop share the stream. An operation that ends after the connection's end sees that the stream is
  // closed.
  std::shared_ptr<TcpStream> stream_;
};

}  // namespace disttrain::transport
