// A chief at "memory:chief", which a test controls. It answers hellos and heartbeats, and keeps the messages that it
// receives.
#pragma once

#include <algorithm>
#include <asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "transport/control_link.h"
#include "transport/wire/codec.h"

namespace disttrain::transport {

class FakeChief final : public ControlHandler {
 public:
  FakeChief(asio::io_context& loop, Transport& transport) : loop_(loop) {
    auto listener = transport.listen(loop, "memory:chief", {}, [this](std::unique_ptr<Arrival> arrival) {
      ++hellos;
      hello = wire::decode_hello(arrival->hello()).value();
      link = std::make_unique<ControlLink>(arrival->adopt(loop_), *this);
      if (answers_hello) link->answer(answer);
    });
    listener_ = std::move(*listener);
  }

  wire::HelloAnswer answer = welcome_of(Term(1), JournalId(7));
  bool answers_hello = true;
  bool answers_heartbeats = true;
  Duration timeout = std::chrono::milliseconds(100);
  Duration pause{};        // HeartbeatAnswer::heartbeat_pause
  Duration clock_ahead{};  // by so much the chief's clock is ahead of the tasks' clock
  int hellos = 0;
  Hello hello;  // the last
  std::vector<wire::ControlMessage> heard;
  std::unique_ptr<ControlLink> link;

  static Welcome welcome_of(Term term, JournalId journal) {
    Welcome welcome;
    welcome.term = term;
    welcome.journal = journal;
    welcome.heartbeat_timeout = std::chrono::milliseconds(100);
    return welcome;
  }
  template <typename Message>
  std::size_t count() const {
    return static_cast<std::size_t>(std::count_if(
        heard.begin(), heard.end(), [](const auto& message) { return std::holds_alternative<Message>(message); }));
  }

 private:
  void on_answer(const wire::HelloAnswer&) override {}
  void on_message(wire::ControlMessage message) override {
    const auto* beat = std::get_if<Heartbeat>(&message);
    const Instant now(std::chrono::steady_clock::now().time_since_epoch());
    if (beat != nullptr && answers_heartbeats)
      // The result doesn't matter, because a test may have closed the link.
      (void)link->send(HeartbeatAnswer{Term(1), timeout, beat->clock, now + clock_ahead, pause});
    heard.push_back(std::move(message));
  }
  void on_closed(const Error&) override {}

  asio::io_context& loop_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace disttrain::transport
