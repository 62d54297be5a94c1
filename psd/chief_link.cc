#include "psd/chief_link.h"

#include <algorithm>
#include <asio/post.hpp>

namespace disttrain::psd {

using transport::Bytes;
using transport::MutableBytes;
using transport::OutgoingFrame;
using wire::FrameHeader;
using wire::FrameType;

ChiefLink::ChiefLink(asio::io_context& loop, transport::Transport& transport, std::string address,
                     const Timeouts& timeouts, daemon::Log& log, ChiefLinkOwner& owner)
    : loop_(loop),
      transport_(transport),
      address_(std::move(address)),
      log_(log),
      owner_(owner),
      timeouts_(timeouts),
      timer_(loop),
      pause_(timeouts.reconnect_first) {}

ChiefLink::~ChiefLink() {
  *alive_ = false;
  if (connection_) connection_->close();
}

void ChiefLink::dial() {
  const std::vector<std::byte> bytes = wire::encode(owner_.hello());
  OutgoingFrame frame;
  frame.header.type = FrameType::kHello;
  frame.control = bytes;
  transport_.dial(loop_, address_, frame, timeouts_.dial,
                  [this, alive = alive_, attempt = ++attempt_](Result<std::unique_ptr<transport::Connection>> dialled) {
                    if (!*alive || attempt != attempt_) return;
                    if (!dialled) return lost(dialled.error().message);
                    connection_ = std::move(*dialled);
                    connection_->start(*this);
                    wait_for_answer();
                  });
}

void ChiefLink::wait_for_answer() {
  timer_.expires_after(timeouts_.dial);
  timer_.async_wait([this, alive = alive_, attempt = attempt_](asio::error_code cancelled) {
    if (cancelled || !*alive || attempt != attempt_ || open_) return;
    lost("it took the connection but didn't answer the hello");
  });
}

void ChiefLink::on_hello_answer(const FrameHeader& header, Bytes control) {
  timer_.cancel();
  const Result<wire::HelloAnswer> answer = wire::decode_hello_answer(header.type, control);
  if (!answer) return lost(answer.error().message);
  if (const auto* refused = std::get_if<Refused>(&*answer)) {
    if (refused->code == ErrorCode::kTemporary || refused->code == ErrorCode::kUnavailable)
      return lost(refused->reason);
    drop_connection();
    return owner_.on_refused(*refused);
  }
  open_ = true;
  told_ = false;
  pause_ = timeouts_.reconnect_first;
  owner_.on_welcome(std::get<Welcome>(*answer));
}

void ChiefLink::lost(const std::string& why) {
  if (open_ || !told_) log_.warn("no connection to the chief at " + address_ + " (" + why + "); trying again");
  told_ = true;
  drop_connection();
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ * 2, timeouts_.reconnect_longest);
  timer_.async_wait([this, alive = alive_, attempt = attempt_](asio::error_code cancelled) {
    if (!cancelled && *alive && attempt == attempt_) dial();
  });
}

void ChiefLink::drop_connection() {
  open_ = false;
  ++attempt_;
  timer_.cancel();
  if (!connection_) return;
  connection_->close();
  // It may be the one that is calling us: it dies when the loop has come out of it.
  asio::post(loop_, [dead = std::shared_ptr<transport::Connection>(std::move(connection_))] {});
}

void ChiefLink::send(const wire::ControlMessage& message) {
  if (!open_) return;
  const Result<wire::EncodedControl> encoded = wire::encode(message);
  if (!encoded) return log_.error("can't tell the chief: " + encoded.error().message);
  OutgoingFrame frame;
  frame.header.type = encoded->type;
  frame.control = encoded->control();
  frame.payload = encoded->payload();
  frame.lifetime = transport::Payload::kCopied;
  connection_->send(frame);
}

Result<MutableBytes> ChiefLink::payload_landing(const FrameHeader& header, Bytes) {
  if (header.type != FrameType::kBlob || header.payload_bytes > wire::kMaxBlobBytes)
    return fail(ErrorCode::kData, "the chief sent a payload that isn't a control message");
  blob_.resize(header.payload_bytes);
  return MutableBytes(blob_);
}

void ChiefLink::on_frame(const FrameHeader& header, Bytes control, Bytes payload) {
  if (!open_) return on_hello_answer(header, control);
  if (header.type != FrameType::kControl && header.type != FrameType::kBlob) return;  // of a later version
  const Result<wire::ControlMessage> message = wire::decode_control(header.type, control, payload);
  if (!message) return log_.warn("the chief said what makes no sense: " + message.error().message);
  owner_.on_message(*message);
}

}  // namespace disttrain::psd
