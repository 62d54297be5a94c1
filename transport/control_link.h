// One end of a control connection: its owner sends and receives messages instead of frames. The chief, the tasks and
// the command line use it. The end that has dialled writes:
//
//   link_ = std::make_unique<ControlLink>(std::move(connection), *this);         // the connection from dial()
//   void on_answer(const wire::HelloAnswer& answer) override { ... }             // Welcome or Refused comes first
//   void on_message(wire::ControlMessage message) override { std::visit(*this, std::move(message)); }
//   void on_closed(const Error& why) override { ... }
//   link_->send(Heartbeat{...});
//
// The end that was dialled has an Arrival. It decodes the hello with wire::decode_hello(arrival->hello()), and writes:
//
//   auto link = std::make_unique<ControlLink>(arrival->adopt(loop_), handler);
//   link->answer(Welcome{...});                       // or link->answer(Refused{...}), and then destroy the link
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::transport {

// The owner of a ControlLink. The link calls it on the connection's loop, and never during a call to the link. The
// owner may destroy the link in such a call.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  // The answer to the hello. Only the end that has dialled gets this call, as its first one.
  virtual void on_answer(const wire::HelloAnswer& answer) = 0;
  virtual void on_message(wire::ControlMessage message) = 0;
  // A received frame was dropped, because this version doesn't know or can't decode it. An end that may drop messages
  // in silence needn't implement this function.
  virtual void on_dropped(const Error&) {}
  // The connection is closed. This is the last call and comes exactly once, but not after close(); see
  // ConnectionHandler.
  virtual void on_closed(const Error& why) = 0;
};

class ControlLink final : private ConnectionHandler {
 public:
  // Starts the connection. The handler must outlive the link.
  ControlLink(std::unique_ptr<Connection> connection, ControlHandler& handler);

  void answer(const wire::HelloAnswer& answer);
  // Sends a message. An error means that the message is too big and wasn't sent. If the connection is lost, on_closed()
  // says so.
  Status send(const wire::ControlMessage& message);
  void close() { connection_->close(); }

  const std::string& peer() const { return connection_->peer(); }
  // Number of bytes that wait to be sent. The owner must limit this number, because a peer may stop reading.
  std::size_t queued_bytes() const { return connection_->queued_bytes(); }
  // Number of received frames that were dropped; see ControlHandler::on_dropped().
  std::uint64_t dropped() const { return dropped_; }

 private:
  Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes control) override;
  void on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) override;
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error& why) override { handler_.on_closed(why); }

  void send_frame(wire::FrameType type, Bytes control, Bytes payload);
  void drop(const Error& why);

  const std::unique_ptr<Connection> connection_;
  ControlHandler& handler_;
  // Memory for the blob that is being received. It isn't zeroed, so it takes real memory only as the bytes arrive.
  std::unique_ptr<std::byte[]> blob_;
  std::uint64_t dropped_ = 0;
};

// Decodes an arrival's hello. If the hello is of another version, returns kConfig with a sentence that names both
// versions.
Result<Hello> hello_of(const Arrival& arrival);

// Answers an arrival's hello with `why` and closes the connection. Don't use the arrival after that.
void refuse(asio::io_context& loop, Arrival& arrival, const Refused& why);

}  // namespace disttrain::transport
