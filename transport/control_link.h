// A control connection for its owner: messages in, messages out. Used at both ends by the chief, the tasks and the
// command line.
//
//   link_ = std::make_unique<ControlLink>(std::move(connection), *this);         // what dial() gave, hello sent
//   void on_answer(const wire::HelloAnswer& answer) override { ... }             // Welcome or Refused, first of all
//   void on_message(wire::ControlMessage message) override { std::visit(*this, std::move(message)); }
//   void on_closed(const Error& why) override { ... }
//   link_->send(Heartbeat{...});
//
// Or, for an arrival whose hello was decoded with wire::decode_hello(arrival->hello()):
//
//   auto link = std::make_unique<ControlLink>(arrival->adopt(loop_), handler);
//   link->answer(Welcome{...});                       // or answer(Refused{...}) and drop the link
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::transport {

// Called on the connection's loop, never from within a call to the link. May drop the link.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  // For the end that dialled: the first call.
  virtual void on_answer(const wire::HelloAnswer& answer) = 0;
  virtual void on_message(wire::ControlMessage message) = 0;
  // The last call, exactly once, but not after close(); see ConnectionHandler.
  virtual void on_closed(const Error& why) = 0;
};

class ControlLink final : private ConnectionHandler {
 public:
  // Starts the connection. The handler outlives the link.
  ControlLink(std::unique_ptr<Connection> connection, ControlHandler& handler);

  void answer(const wire::HelloAnswer& answer);
  // An error means that the message is too big; nothing was sent. on_closed() reports a lost connection.
  Status send(const wire::ControlMessage& message);
  void close() { connection_->close(); }

  const std::string& peer() const { return connection_->peer(); }
  // Bytes that the peer hasn't taken. The owner must bound them, against a peer that doesn't read.
  std::size_t queued_bytes() const { return connection_->queued_bytes(); }
  // Frames dropped because this version doesn't know them or can't decode them.
  std::uint64_t dropped() const { return dropped_; }

 private:
  Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes control) override;
  void on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) override;
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error& why) override { handler_.on_closed(why); }

  void send_frame(wire::FrameType type, Bytes control, Bytes payload);

  const std::unique_ptr<Connection> connection_;
  ControlHandler& handler_;
  std::unique_ptr<std::byte[]> blob_;  // memory for the blob being received; pages are touched only as its bytes arrive
  std::uint64_t dropped_ = 0;
};

// Decodes an arrival's hello. kConfig, with a sentence that names both versions, for a hello of another version.
Result<Hello> hello_of(const Arrival& arrival);

// Answers a hello with `why` and closes the connection. The arrival can't be used afterwards.
void refuse(asio::io_context& loop, Arrival& arrival, const Refused& why);

}  // namespace disttrain::transport
