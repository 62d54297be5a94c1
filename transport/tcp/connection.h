// A connection over one tcp socket. Sent bytes go from the caller's memory to the kernel, in one call if they fit.
// Received bytes go from the kernel to their landing, except for the few KiB that arrive together with a header.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "transport/connection.h"
#include "transport/peer_limit.h"
#include "transport/tcp/socket.h"
#include "transport/traffic.h"
#include "transport/wire/frame_reader.h"

namespace disttrain::transport {

// A socket that is moved between loops, with frames under way.
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
  // From the loop's thread.
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
  // shared with operations of the loop: one that ends after the connection finds the stream closed
  std::shared_ptr<TcpStream> stream_;
};

}  // namespace disttrain::transport
