// How a connection sends and receives frames through a ByteChannel; only transport/stream uses this class. A
// StreamConnection and its operations on the loop own the stream together. Make all calls on that loop.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "transport/connection.h"
#include "transport/stream/byte_channel.h"
#include "transport/stream/handler_memory.h"
#include "transport/stream/send_queue.h"
#include "transport/stream/stream_start.h"

namespace disttrain::transport {

class Stream final : public ByteChannelUser, public std::enable_shared_from_this<Stream> {
 public:
  Stream(asio::io_context& loop, std::unique_ptr<ByteChannel> channel, StreamStart start);

  void start(ConnectionHandler& handler);
  void send(const OutgoingFrame& frame);
  void pause() { paused_ = true; }
  void resume();
  void close();
  void share(const Arena& arena);

  void on_readable() override;
  void on_writable() override;
  void on_fetched(const Status& fetched) override;

  std::size_t queued_bytes() const { return queue_.queued_bytes(); }
  const char* wire() const { return channel_->wire(); }
  const std::string& peer() const { return peer_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  std::uint64_t bytes_sent() const { return queue_.bytes_sent() + bytes_placed_; }

 private:
  // One turn sends and receives at most this many bytes, so that other work on the loop isn't delayed.
  static constexpr std::size_t kBytesPerTurn = 4 * 1024 * 1024;

  // Receiving. At any time at most one of these is pending: a receive turn on the loop, or a wait for bytes from the
  // channel.
  void post_receive();
  void wait_readable();
  void receive_turn();
  // Passes whole frames to the handler. Returns false if receiving must stop, because the connection is closed, paused
  // or broken.
  bool deliver();
  // Handles the frame's PayloadPlace. Returns false if the connection is closed or broken, or waits for the payload.
  bool take_place();
  // Begins to fetch the frame's payload. on_fetched() goes on.
  void fetch();
  // Reads from the channel and returns the number of bytes; 0 if there are none or the connection failed. Sets `asked`
  // to the number of bytes that it asked for.
  std::size_t read_some(std::size_t& asked);

  // Sending.
  void wait_writable();
  void flush();
  void tell_sent();
  void count_sent();
  // Handles a failure to send. First passes on the frames that have already come from the peer, because these frames
  // often say why the peer closed the connection.
  void sending_failed(const Error& why);

  // Tells the handler of a failure, in a later turn of the loop.
  void fail_later(Error why);
  void post_failure();

  asio::io_context& loop_;
  const std::string peer_;
  const wire::ChecksumKind checksum_kind_;

  const std::unique_ptr<ByteChannel> channel_;
  PeerSlot slot_;
  wire::FrameReader reader_;
  SendQueue queue_;
  ConnectionHandler* handler_ = nullptr;  // null before start() and after close()
  std::optional<Error> send_failure_;     // a failure to send; reported when all received bytes are read
  std::optional<Error> failure_;          // the failure that a posted turn will report to the handler
  bool closed_ = false;
  bool paused_ = false;
  std::shared_ptr<const void> lent_;  // keeps the payload that the handler is reading
  // Memory for the operations that may wait in the loop: to receive, and to call on_sent().
  HandlerMemory receive_memory_;
  HandlerMemory tell_memory_;
  std::vector<std::uint64_t> told_;  // the cookies for which on_sent() is being called; a member to reuse its memory
  bool receive_under_way_ = false;
  bool is_fetching_ = false;           // a payload is being fetched; nothing else is received meanwhile
  MutableBytes fetched_;               // where it lands
  std::vector<std::byte> no_landing_;  // for such a payload of a frame of unknown type
  bool write_wait_under_way_ = false;
  bool tell_under_way_ = false;
  std::uint64_t bytes_received_;
  std::uint64_t bytes_placed_ = 0;   // of payloads that aren't in their frames, of sent frames
  std::uint64_t bytes_counted_ = 0;  // number of sent bytes that are already counted in traffic_
  const std::shared_ptr<Traffic> traffic_;
};

}  // namespace disttrain::transport
