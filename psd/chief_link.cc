#include "psd/chief_link.h"

#include <algorithm>

namespace disttrain::psd {

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
}

void ChiefLink::dial() {
  const std::vector<std::byte> bytes = wire::encode(owner_.hello());
  transport::OutgoingFrame frame;
  frame.header.type = wire::FrameType::kHello;
  frame.control = bytes;
  transport_.dial(loop_, address_, frame, timeouts_.dial,
                  [this, alive = alive_, attempt = ++attempt_](Result<std::unique_ptr<transport::Connection>> dialled) {
                    if (!*alive || attempt != attempt_) return;
                    if (!dialled) return lost(dialled.error().message);
                    connection_ = std::make_unique<transport::ControlLink>(
                        std::move(*dialled), static_cast<transport::ControlHandler&>(*this));
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

void ChiefLink::on_answer(const wire::HelloAnswer& answer) {
  timer_.cancel();
  if (const auto* refused = std::get_if<Refused>(&answer)) {
    if (refused->code == ErrorCode::kTemporary || refused->code == ErrorCode::kUnavailable)
      return lost(refused->reason);
    drop_connection();
    return owner_.on_refused(*refused);
  }
  open_ = true;
  told_ = false;
  pause_ = timeouts_.reconnect_first;
  owner_.on_welcome(std::get<Welcome>(answer));
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
  connection_.reset();
}

void ChiefLink::send(const wire::ControlMessage& message) {
  if (!open_) return;
  if (const Status sent = connection_->send(message); !sent)
    log_.error("can't tell the chief: " + sent.error().message);
}

}  // namespace disttrain::psd
