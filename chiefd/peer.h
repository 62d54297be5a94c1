// One control connection to the chief, from a task or from a client (a command line). Sends and receives messages. Only
// the chief's loop uses this class.
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
  // A message from the peer with a payload of more than `max_blob_bytes` closes the connection.
  Peer(PeerId id, std::unique_ptr<transport::Connection> connection, std::uint64_t max_blob_bytes, Handlers handlers);

  PeerId id() const { return id_; }
  const std::string& address() const { return connection_->peer(); }

  void welcome(const Welcome& welcome);
  void refuse(const Refused& refused);
  void send(const wire::ControlMessage& message);
  // The bytes of sent messages that still wait for the peer to read them.
  std::size_t queued_bytes() const { return connection_->queued_bytes(); }
  void close() { connection_->close(); }
  // After pause() the chief receives nothing from the peer until resume().
  void pause() { connection_->pause_receiving(); }
  void resume() { connection_->resume_receiving(); }

  // The chief sets one of these when it admits the peer: `member` for a task, `user` for a client.
  std::optional<Member> member;
  std::optional<std::string> user;

  // If true, the peer is a client with a request that the chief hasn't answered yet.
  bool is_asking = false;
  // For a client: the number of queued bytes when the chief last checked.
  std::size_t unread_bytes = 0;
  // For a client: the client has read none of its queued bytes since this time.
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
  // The buffer for the payload that is arriving. It isn't zeroed, so that it takes up memory only as bytes arrive.
  std::unique_ptr<std::byte[]> landing_;
};

}  // namespace disttrain::chiefd
