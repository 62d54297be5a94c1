#include "workerd/chief_link.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

namespace disttrain::workerd {

ChiefLink::ChiefLink(asio::io_context& loop, transport::Transport& transport, std::string address, Timeouts timeouts,
                     Handlers handlers)
    : loop_(loop),
      transport_(transport),
      address_(std::move(address)),
      handlers_(std::move(handlers)),
      timeouts_(timeouts),
      timer_(loop),
      alive_(std::make_shared<bool>(true)),
      pause_(timeouts.reconnect_first) {}

ChiefLink::~ChiefLink() {
  close();
}

void ChiefLink::open() {
  dial();
}

void ChiefLink::close() {
  *alive_ = false;
  drop_connection();
}

void ChiefLink::dial() {
  const std::vector<std::byte> bytes = wire::encode(handlers_.make_hello());
  transport::OutgoingFrame frame;
  frame.header.type = wire::FrameType::kHello;
  frame.control = bytes;
  const std::uint64_t attempt = ++attempt_;
  transport_.dial(loop_, address_, frame, timeouts_.dial,
                  [this, alive = alive_, attempt](Result<std::unique_ptr<transport::Connection>> connection) {
                    if (!*alive || attempt != attempt_) return;
                    if (!connection) return lost(connection.error().message);
                    transport::ControlHandler& self = *this;
                    connection_ = std::make_unique<transport::ControlLink>(std::move(*connection), self);
                    timer_.expires_after(timeouts_.dial);
                    timer_.async_wait([this, alive, attempt](asio::error_code cancelled) {
                      if (cancelled || !*alive || attempt != attempt_ || open_) return;
                      lost("it took the connection but didn't answer the hello");
                    });
                  });
}

void ChiefLink::on_answer(const wire::HelloAnswer& answer) {
  timer_.cancel();
  if (const auto* refused = std::get_if<Refused>(&answer)) {
    if (refused->code == ErrorCode::kTemporary) return lost(refused->reason);
    drop_connection();
    return handlers_.on_refused(
        Error{refused->code, "the chief at " + address_ + " refuses this worker: " + refused->reason});
  }
  open_ = true;
  said_unreachable_ = false;
  pause_ = timeouts_.reconnect_first;
  handlers_.on_welcome(std::get<Welcome>(answer));
  for (const wire::ControlMessage& message : std::exchange(waiting_, {})) tell(message);
}

void ChiefLink::tell(wire::ControlMessage message) {
  if (!open_) {
    if (waiting_.size() == kMaxWaiting) waiting_.pop_front();
    waiting_.push_back(std::move(message));
    return;
  }
  // Too big to be sent: only a model could be, and its layout couldn't come back either.
  if (Status sent = connection_->send(message); !sent) handlers_.on_unsent(sent.error());
}

void ChiefLink::tell_now(const wire::ControlMessage& message) {
  if (!has_room()) return;
  if (Status sent = connection_->send(message); !sent) handlers_.on_unsent(sent.error());
}

void ChiefLink::drop(const std::string& reason) {
  if (open_) lost(reason);
}

void ChiefLink::lost(const std::string& reason) {
  const bool was_open = open_;
  drop_connection();
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ * 2, timeouts_.reconnect_longest);
  timer_.async_wait([this, alive = alive_, attempt = attempt_](asio::error_code cancelled) {
    if (!cancelled && *alive && attempt == attempt_) dial();
  });
  if (was_open) return handlers_.on_lost(reason);
  if (!std::exchange(said_unreachable_, true)) handlers_.on_unreachable(reason);
}

void ChiefLink::drop_connection() {
  open_ = false;
  ++attempt_;
  timer_.cancel();
  if (!connection_) return;
  connection_->close();
  // It may be the one that is calling us: it dies when the loop has come out of it.
  asio::post(loop_, [dead = std::shared_ptr<transport::ControlLink>(std::move(connection_))] {});
}

}  // namespace disttrain::workerd
