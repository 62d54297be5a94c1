#include "transport/chief_link.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "common/format_duration.h"
#include "transport/clock.h"

namespace disttrain::transport {
namespace {

// Returns true if the task repeats messages of this type by itself. If so, such a message needn't wait while no chief
// is connected.
bool is_said_again(const wire::ControlMessage& message) {
  return std::holds_alternative<Heartbeat>(message) || std::holds_alternative<LogLines>(message) ||
         std::holds_alternative<Accusation>(message) || std::holds_alternative<LeaseRequest>(message);
}

}  // namespace

ChiefLink::ChiefLink(asio::io_context& loop, Transport& transport, std::string address, const Timeouts& timeouts,
                     Handlers handlers)
    : loop_(loop),
      transport_(transport),
      address_(std::move(address)),
      handlers_(std::move(handlers)),
      timeouts_(timeouts),
      timer_(loop),
      pause_(timeouts.reconnect_first) {}

ChiefLink::~ChiefLink() {
  close();
}

void ChiefLink::close() {
  *alive_ = false;
  drop_connection();
}

void ChiefLink::dial() {
  const std::vector<std::byte> bytes = wire::encode(handlers_.make_hello());
  OutgoingFrame frame;
  frame.header.type = wire::FrameType::kHello;
  frame.control = bytes;
  transport_.dial(loop_, address_, frame, timeouts_.dial,
                  [this, alive = alive_, attempt = ++attempt_](Result<std::unique_ptr<Connection>> dialled) {
                    if (!*alive || attempt != attempt_) return;
                    if (!dialled) return lost(dialled.error().message);
                    ControlHandler& self = *this;
                    connection_ = std::make_unique<ControlLink>(std::move(*dialled), self);
                    timer_.expires_after(timeouts_.dial);
                    timer_.async_wait([this, alive, attempt](asio::error_code cancelled) {
                      if (cancelled || !*alive || attempt != attempt_ || open_) return;
                      lost("the connection was accepted, but the hello wasn't answered");
                    });
                  });
}

void ChiefLink::redial() {
  drop_connection();
  pause_ = timeouts_.reconnect_first;
  asio::post(loop_, [this, alive = alive_, attempt = attempt_] {
    if (*alive && attempt == attempt_) dial();
  });
}

void ChiefLink::on_answer(const wire::HelloAnswer& answer) {
  timer_.cancel();
  if (const auto* welcome = std::get_if<Welcome>(&answer)) return welcomed(*welcome);
  const Refused& refused = std::get<Refused>(answer);
  const bool may_pass = refused.code == ErrorCode::kTemporary || refused.code == ErrorCode::kUnavailable;
  if (may_pass && !refused.ends) return turned_away(refused.reason);
  drop_connection();
  handlers_.on_refused(Error{refused.code, "the chief at " + address_ + " refuses this task: " + refused.reason});
}

void ChiefLink::welcomed(const Welcome& welcome) {
  const Obedience::Answer answer = obedience_.hear(welcome);
  if (answer.verdict == Obedience::Verdict::kRefuse) return turned_away(answer.why);
  if (welcome.heartbeat_timeout > Duration::zero()) timeouts_ = derive_timeouts(welcome.heartbeat_timeout);
  open_ = true;
  said_away_ = false;
  said_refusal_.clear();
  said_unread_.clear();
  pause_ = timeouts_.reconnect_first;
  heard_ = std::chrono::steady_clock::now();
  clock_.forget();
  watch_silence();
  if (answer.verdict == Obedience::Verdict::kObeyAnew) {
    waiting_.clear();
    handlers_.on_other_journal();
    if (!open_) return;  // the link dials again
  }
  handlers_.on_welcome(welcome);
  for (wire::ControlMessage& message : std::exchange(waiting_, {})) tell(std::move(message));
}

void ChiefLink::watch_silence() {
  const Duration longest = timeouts_.silent * kSilentTimeouts;
  timer_.expires_at(heard_ + longest);
  timer_.async_wait([this, longest, alive = alive_, attempt = attempt_](asio::error_code cancelled) {
    if (cancelled || !*alive || attempt != attempt_) return;
    if (std::chrono::steady_clock::now() < heard_ + longest) return watch_silence();
    lost("the chief has been silent for " + format_duration(longest));
  });
}

void ChiefLink::on_message(wire::ControlMessage message) {
  if (!open_) return;
  heard_ = std::chrono::steady_clock::now();
  if (const auto* answer = std::get_if<HeartbeatAnswer>(&message)) {
    if (answer->heartbeat_timeout > Duration::zero()) timeouts_ = derive_timeouts(answer->heartbeat_timeout);
    if (answer->heartbeat_pause > Duration::zero())
      timeouts_.heartbeat = std::min(answer->heartbeat_pause, timeouts_.silent / 2);
    if (answer->heartbeat_clock != Instant() && answer->chief_clock != Instant())
      clock_.hear(answer->heartbeat_clock, answer->chief_clock, monotonic_now());
    return;
  }
  handlers_.on_message(std::move(message));
}

void ChiefLink::on_dropped(const Error& why) {
  if (said_unread_.size() < kMaxUnread && said_unread_.insert(why.message).second) handlers_.on_unread(why);
}

void ChiefLink::tell(wire::ControlMessage message) {
  if (is_said_again(message)) {
    if (!has_room()) return;
  } else if (!open_) {
    if (waiting_.size() == kMaxWaiting) waiting_.pop_front();
    waiting_.push_back(std::move(message));
    return;
  }
  if (auto* beat = std::get_if<Heartbeat>(&message)) beat->clock = monotonic_now();
  // send() fails only if the message is too big. Only a JobDescribed can be that big. Its job can't run anyway, because
  // the chief couldn't send the layout of such a model.
  if (const Status sent = connection_->send(message); !sent) handlers_.on_unsent(sent.error());
}

std::optional<ClockOffset> ChiefLink::clock_offset() const {
  return clock_.best(monotonic_now());
}

// The process at the chief's address refused the task, or isn't a chief that the task obeys. Reports each new reason
// with on_away, even if another failure was reported before.
void ChiefLink::turned_away(const std::string& why) {
  if (std::exchange(said_refusal_, why) != why) said_away_ = false;
  lost(why);
}

void ChiefLink::lost(const std::string& why) {
  drop_connection();
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ * 2, timeouts_.reconnect_longest);
  timer_.async_wait([this, alive = alive_, attempt = attempt_](asio::error_code cancelled) {
    if (!cancelled && *alive && attempt == attempt_) dial();
  });
  if (!std::exchange(said_away_, true)) handlers_.on_away(why);
}

void ChiefLink::drop_connection() {
  open_ = false;
  ++attempt_;
  timer_.cancel();
  if (!connection_) return;
  connection_->close();
  // We may be inside a call from this connection. So the loop destroys the connection later, after the call has
  // returned.
  asio::post(loop_, [dead = std::shared_ptr<ControlLink>(std::move(connection_))] {});
}

}  // namespace disttrain::transport
