#include "transport/control_link.h"

namespace disttrain::transport {

ControlLink::ControlLink(std::unique_ptr<Connection> connection, ControlHandler& handler)
    : connection_(std::move(connection)), handler_(handler) {
  connection_->start(*this);
}

void ControlLink::answer(const wire::HelloAnswer& answer) {
  if (const auto* welcome = std::get_if<Welcome>(&answer))
    send_frame(wire::FrameType::kWelcome, wire::encode(*welcome), {});
  else
    send_frame(wire::FrameType::kRefused, wire::encode(std::get<Refused>(answer)), {});
}

Status ControlLink::send(const wire::ControlMessage& message) {
  const Result<wire::EncodedControl> encoded = wire::encode(message);
  if (!encoded) return tl::unexpected(encoded.error());
  send_frame(encoded->type, encoded->control(), encoded->payload());
  return {};
}

void ControlLink::send_frame(wire::FrameType type, Bytes control, Bytes payload) {
  OutgoingFrame frame;
  frame.header.type = type;  // the header's job and generation stay empty, because the message has them
  frame.control = control;
  frame.payload = payload;
  frame.lifetime = Payload::kCopied;
  connection_->send(frame);
}

Result<MutableBytes> ControlLink::payload_landing(const wire::FrameHeader& header, Bytes) {
  if (header.type != wire::FrameType::kBlob)
    return fail(ErrorCode::kData, peer() + " sent a frame of type " +
                                      std::to_string(static_cast<unsigned>(header.type)) +
                                      " with a payload on a control connection");
  blob_ = std::make_unique_for_overwrite<std::byte[]>(header.payload_bytes);
  return MutableBytes(blob_.get(), header.payload_bytes);
}

void ControlLink::on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) {
  const auto blob = std::move(blob_);  // keeps the blob until this call ends, even if the handler destroys this link
  if (header.type == wire::FrameType::kWelcome || header.type == wire::FrameType::kRefused) {
    const auto answer = wire::decode_hello_answer(header.type, control);
    if (answer) return handler_.on_answer(*answer);
    return drop(answer.error());
  }
  auto message = wire::decode_control(header.type, control, payload);
  if (message)
    handler_.on_message(std::move(*message));
  else
    drop(message.error());
}

void ControlLink::drop(const Error& why) {
  ++dropped_;
  handler_.on_dropped(why);  // may destroy this link
}

Result<Hello> hello_of(const Arrival& arrival) {
  if (arrival.header().version != kProtocolVersion)
    return fail(ErrorCode::kConfig, "you speak protocol version " + std::to_string(arrival.header().version) +
                                        ", this program speaks " + std::to_string(kProtocolVersion) +
                                        ": install the same version of disttrain on all hosts");
  return wire::decode_hello(arrival.hello());
}

void refuse(asio::io_context& loop, Arrival& arrival, const Refused& why) {
  const std::vector<std::byte> bytes = wire::encode(why);
  const std::unique_ptr<Connection> connection = arrival.adopt(loop);
  OutgoingFrame frame;
  frame.header.type = wire::FrameType::kRefused;
  frame.control = bytes;
  connection->send(frame);
  connection->close();
}

}  // namespace disttrain::transport
