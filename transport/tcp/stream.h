// Inside tcp: the state of a connection, sending and receiving. Owned by a TcpConnection and by its operations on the
// loop; make all calls on that loop.
#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <memory>
#include <optional>
#include <string>

#include "transport/tcp/connection.h"
#include "transport/tcp/handler_memory.h"
#include "transport/tcp/send_queue.h"

namespace disttrain::transport {

class TcpStream : public std::enable_shared_from_this<TcpStream> {
 public:
  TcpStream(asio::io_context& loop, TcpSocket socket, const TcpOptions& options);

  void start(ConnectionHandler& handler);
  void send(const OutgoingFrame& frame);
  void pause() { paused_ = true; }
  void resume();
  void close();

  std::size_t queued_bytes() const { return queue_.queued_bytes(); }
  const std::string& peer() const { return peer_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  std::uint64_t bytes_sent() const { return queue_.bytes_sent(); }

 private:
  // One turn moves at most this many bytes each way; then others on the loop have their turn.
  static constexpr std::size_t kBytesPerTurn = 4 * 1024 * 1024;

  // Receiving. At most one of the two is pending: a posted turn, or a wait for the socket.
  void post_receive();
  void wait_readable();
  void receive_turn();
  // Gives whole frames to the handler. False: stop, because the connection is closed or paused.
  bool deliver();
  // Bytes read; 0: none available, or the connection failed.
  std::size_t read_some(std::size_t& asked);

  // Sending.
  void wait_writable();
  void flush();
  void tell_sent();
  void count_sent();
  // Still reads what the peer sent before it went, and gives it to the handler: often it says why.
  void sending_failed(const Error& why);

  // The handler is told in a turn of its own.
  void fail_later(Error why);
  void post_failure();

  asio::io_context& loop_;
  const std::string peer_;
  const wire::ChecksumKind checksum_kind_;

  asio::posix::stream_descriptor socket_;
  PeerSlot slot_;
  wire::FrameReader reader_;
  SendQueue queue_;
  ConnectionHandler* handler_ = nullptr;  // null before start() and after close
  std::optional<Error> send_failure_;     // reported once all is read, unless reading fails with a reason of its own
  std::optional<Error> failure_;          // reported by the posted turn
  bool closed_ = false;
  bool paused_ = false;
  // Operations that may wait in the loop: a receive turn or a wait to read, a wait to write, a report of what was sent.
  HandlerMemory receive_memory_;
  HandlerMemory write_memory_;
  HandlerMemory tell_memory_;
  std::vector<std::uint64_t> told_;  // kept so that its memory is reused
  bool receive_under_way_ = false;
  bool write_wait_under_way_ = false;
  bool tell_under_way_ = false;
  std::uint64_t bytes_received_;
  std::uint64_t bytes_counted_ = 0;  // sent bytes that traffic_ already includes
  const std::shared_ptr<Traffic> traffic_;
};

}  // namespace disttrain::transport
