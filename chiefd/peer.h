// One control connection to the chief, of a task or of a command line: messages in and out. Belongs to the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/messages/session.h"
#include "common/time.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::chiefd {

using PeerId = StrongId<struct PeerIdTag, std::uint64_t>;

class Peer final : private transport::ConnectionHandler {
 public:
  struct Handlers {
    std::function<void(PeerId, const wire::ControlMessage&)> on_message;
    std::function<void(PeerId, const Error&)> on_closed;  // once; not after close()
  };
  // `max_blob_bytes`: a bigger message from the peer closes the connection.
  Peer(PeerId id, std::unique_ptr<transport::Connection> connection, std::uint64_t max_blob_bytes, Handlers handlers);

  PeerId id() const { return id_; }
  const std::string& address() const { return connection_->peer(); }

  void welcome(const Welcome& welcome);
  void refuse(const Refused& refused);
  void send(const wire::ControlMessage& message);
  // Bytes that the peer hasn't taken yet.
  std::size_t queued_bytes() const { return connection_->queued_bytes(); }
  void close() { connection_->close(); }
  // While paused, nothing is received from the peer.
  void pause() { connection_->pause_receiving(); }
  void resume() { connection_->resume_receiving(); }

  // Who the peer is, once admitted: a task (member) or a client (user).
  std::optional<Member> member;
  std::optional<std::string> user;

  // Only of a client: it has asked and isn't answered yet.
  bool is_asking = false;
  // The queued bytes at the last look, and since when the client has taken none of them.
  std::size_t unread_bytes = 0;
  Instant unread_since{};

 private:
  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes control) override;
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override;
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error& why) override;
  void send_frame(wire::FrameType type, transport::Bytes control, transport::Bytes payload);

  // Constant.
  const PeerId id_;
  const std::uint64_t max_blob_bytes_;
  const Handlers handlers_;

  std::unique_ptr<transport::Connection> connection_;
  std::unique_ptr<std::byte[]> landing_;  // not zeroed: memory is used only as bytes arrive
};

}  // namespace disttrain::chiefd
