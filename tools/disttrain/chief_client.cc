#include "tools/disttrain/chief_client.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "common/format_duration.h"
#include "tools/disttrain/units.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

// Pauses between attempts to reach a chief that may still be starting. Each is twice as long as the previous one.
constexpr Duration kFirstRetryPause = 50ms;
constexpr Duration kLongestRetryPause = 1s;

std::string user_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

}  // namespace

Status ChiefClient::connect(const ChiefTarget& target, Duration deadline) {
  target_ = target;
  const auto end = std::chrono::steady_clock::now() + deadline;
  for (Duration pause = kFirstRetryPause;; pause = std::min(pause * 2, kLongestRetryPause)) {
    Status connected = say_hello(deadline);
    const bool may_come = !connected && (connected.error().code == ErrorCode::kUnavailable ||
                                         connected.error().code == ErrorCode::kTemporary);
    if (!may_come || (give_up_ && give_up_()) || std::chrono::steady_clock::now() + pause >= end) return connected;
    if (Status rested = rest(pause); !rested) return rested;
  }
}

Status ChiefClient::say_hello(Duration deadline) {
  connection_.reset();
  closed_.reset();
  hello_answer_.reset();
  arrived_.clear();
  is_owed_ = false;

  Hello hello;
  hello.cluster = target_.cluster;
  hello.cluster_hash = target_.cluster_hash;
  hello.who = ClientHello{user_name()};
  const std::vector<std::byte> bytes = wire::encode(hello);
  transport::OutgoingFrame frame;
  frame.header.type = wire::FrameType::kHello;
  frame.control = bytes;

  const std::string what = "an answer from chief/0 at " + target_.address;
  // The dial's callback also owns this variable, because the dial may end after this function has timed out and
  // returned.
  auto dialled = std::make_shared<std::optional<Result<std::unique_ptr<transport::Connection>>>>();
  transport_->dial(loop_, target_.address, frame, deadline, [dialled](auto result) { *dialled = std::move(result); });
  if (Status done = wait(
          deadline * 2, [&dialled] { return dialled->has_value(); }, what);
      !done)
    return done;
  if (!**dialled)
    return fail((*dialled)->error().code, "can't reach chief/0 at " + target_.address + ": " +
                                              (*dialled)->error().message +
                                              "; is chiefd running there? See: disttrain status --chief HOST:PORT");
  connection_ = std::move(***dialled);
  connection_->start(*this);
  if (Status done = wait(
          deadline, [this] { return hello_answer_.has_value(); }, what);
      !done)
    return done;
  if (const auto* refused = std::get_if<Refused>(&*hello_answer_))
    return fail(refused->code, "chief/0 at " + target_.address + " refused the connection: " + refused->reason);
  for (const std::string& warning : std::get<Welcome>(*hello_answer_).warnings)
    std::cerr << "warning: " << warning << '\n';
  return {};
}

Result<wire::ControlMessage> ChiefClient::exchange(const wire::ControlMessage& request, Duration deadline) {
  auto encoded = wire::encode(request);
  if (!encoded) return tl::unexpected<Error>(std::move(encoded.error()));
  if (is_owed_) arrived_.clear();
  if (is_owed_ && is_connected())
    if (Status again = say_hello(deadline); !again) return tl::unexpected<Error>(std::move(again.error()));
  if (connection_ && !closed_) {
    transport::OutgoingFrame frame;
    frame.header.type = encoded->type;
    frame.control = encoded->control();
    frame.payload = encoded->payload();
    frame.lifetime = transport::Payload::kCopied;
    connection_->send(frame);
  }
  if (Status answered = await_message(deadline); !answered) {
    is_owed_ = true;
    return tl::unexpected<Error>(std::move(answered.error()));
  }
  return take_message();
}

Status ChiefClient::await_message(Duration deadline) {
  return wait(
      deadline, [this] { return !arrived_.empty(); }, "an answer from chief/0 at " + target_.address);
}

Result<wire::ControlMessage> ChiefClient::take_message() {
  wire::ControlMessage message = std::move(arrived_.front());
  arrived_.pop_front();
  if (const auto* refused = std::get_if<Refused>(&message)) return fail(refused->code, refused->reason);
  return message;
}

Result<wire::ControlMessage> ChiefClient::next(Duration deadline) {
  if (Status arrived = await_message(deadline); !arrived) return tl::unexpected<Error>(std::move(arrived.error()));
  return take_message();
}

Status ChiefClient::wait(Duration deadline, const std::function<bool()>& is_done, const std::string& for_what) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  bool is_late = false;
  while (!is_done()) {
    if (closed_) return fail(ErrorCode::kUnavailable, "lost chief/0 at " + target_.address + ": " + closed_->message);
    if (give_up_ && give_up_()) return fail(ErrorCode::kTemporary, "interrupted while waiting for " + for_what);
    if (is_late) return fail(ErrorCode::kUnavailable, "waited " + format_duration(deadline) + " for " + for_what);
    // Before the wait times out, the loop runs once more. If this process was stopped (SIGSTOP) until after the
    // deadline, an answer may have arrived in time, and it still counts.
    is_late = std::chrono::steady_clock::now() >= end;
    if (is_late) {
      loop_.restart();
      loop_.poll();
    } else {
      turn_until(end);
    }
  }
  return {};
}

void ChiefClient::turn_until(std::chrono::steady_clock::time_point end) {
  loop_.restart();  // asio stops a loop that has no work left
  loop_.run_one_until(end);
}

Status ChiefClient::rest(Duration pause) {
  const auto end = std::chrono::steady_clock::now() + pause;
  while (std::chrono::steady_clock::now() < end) {
    if (give_up_ && give_up_()) return fail(ErrorCode::kTemporary, "interrupted while dialling " + target_.address);
    turn_until(end);
  }
  return {};
}

Result<transport::MutableBytes> ChiefClient::payload_landing(const wire::FrameHeader& header, transport::Bytes) {
  landing_.resize(header.payload_bytes);  // at most 64 MiB: the frame reader refuses larger frames
  return transport::MutableBytes(landing_);
}

void ChiefClient::on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) {
  if (!hello_answer_) {
    auto answer = wire::decode_hello_answer(header.type, control);
    if (answer)
      hello_answer_ = std::move(*answer);
    else
      on_closed(answer.error());
    return;
  }
  if (header.type != wire::FrameType::kControl && header.type != wire::FrameType::kBlob) return;  // a later version's
  auto message = wire::decode_control(header.type, control, payload);
  if (message)
    arrived_.push_back(std::move(*message));
  else
    on_closed(message.error());
}

void ChiefClient::on_closed(const Error& why) {
  if (!closed_) closed_ = why;
}

}  // namespace disttrain::cli
