// A connection over one tcp socket. What is sent goes from the caller's memory to the kernel in one call where it fits;
// what comes goes from the kernel to its landing, but for the few KiB that arrive together with a header.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "transport/connection.h"
#include "transport/peer_limit.h"
#include "transport/tcp/socket.h"
#include "transport/traffic.h"
#include "transport/wire/frame_reader.h"

namespace disttrain::transport {

// A socket on which frames are under way, between loops.
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
  // Shared with the loop's operations that are under way, which find it closed when they end after us.
  std::shared_ptr<TcpStream> stream_;
};

}  // namespace disttrain::transport
