#include "chiefd/peer.h"

#include <utility>

namespace disttrain::chiefd {

Peer::Peer(PeerId id, std::unique_ptr<transport::Connection> connection, std::uint64_t max_blob_bytes,
           Handlers handlers)
    : id_(id), max_blob_bytes_(max_blob_bytes), handlers_(std::move(handlers)), connection_(std::move(connection)) {
  connection_->start(*this);
}

void Peer::send_frame(wire::FrameType type, transport::Bytes control, transport::Bytes payload) {
  transport::OutgoingFrame frame;
  frame.header.type = type;
  frame.control = control;
  frame.payload = payload;
  frame.lifetime = transport::Payload::kCopied;
  connection_->send(frame);
}

void Peer::welcome(const Welcome& welcome) {
  send_frame(wire::FrameType::kWelcome, wire::encode(welcome), {});
}

void Peer::refuse(const Refused& refused) {
  send_frame(wire::FrameType::kRefused, wire::encode(refused), {});
}

void Peer::send(const wire::ControlMessage& message) {
  const Result<wire::EncodedControl> encoded = wire::encode(message);
  if (encoded) return send_frame(encoded->type, encoded->control(), encoded->payload());
  // The message is too big for a frame. Send a refusal instead, so that the peer doesn't wait for an answer that never
  // comes.
  const Result<wire::EncodedControl> refusal =
      wire::encode(wire::ControlMessage(Refused{encoded.error().code, encoded.error().message}));
  if (refusal) send_frame(refusal->type, refusal->control(), refusal->payload());
}

Result<transport::MutableBytes> Peer::payload_landing(const wire::FrameHeader& header, transport::Bytes) {
  if (header.type != wire::FrameType::kBlob || header.payload_bytes > max_blob_bytes_)
    return fail(ErrorCode::kData, "it sent a message of " + std::to_string(header.payload_bytes) +
                                      " bytes; the chief accepts at most " + std::to_string(max_blob_bytes_));
  landing_ = std::make_unique_for_overwrite<std::byte[]>(header.payload_bytes);
  return transport::MutableBytes(landing_.get(), header.payload_bytes);
}

void Peer::on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) {
  // Ignore frame types that only a later protocol version knows.
  if (header.type != wire::FrameType::kControl && header.type != wire::FrameType::kBlob) return;
  const Result<wire::ControlMessage> message = wire::decode_control(header.type, control, payload);
  landing_.reset();
  if (message) return handlers_.on_message(id_, *message);
  if (message.error().code == ErrorCode::kConfig) return;  // ignore messages that only a later version knows
  connection_->close();
  handlers_.on_closed(id_, message.error());
}

void Peer::on_closed(const Error& why) {
  handlers_.on_closed(id_, why);
}

}  // namespace disttrain::chiefd
