// ChiefLink: a worker's control connection. Dials the chief, says who we are, and dials again, with pauses that double,
// whenever the connection is lost. Belongs to the main loop.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "common/messages/session.h"
#include "common/timeouts.h"
#include "transport/connection.h"
#include "transport/control_link.h"
#include "transport/wire/codec.h"

namespace disttrain::workerd {

class ChiefLink final : private transport::ControlHandler {
 public:
  // Called on the loop, never from within a call to the link.
  struct Handlers {
    std::function<Hello()> make_hello;
    std::function<void(const Welcome&)> on_welcome;
    std::function<void(wire::ControlMessage)> on_message;
    // The connection was open and isn't any more; it is dialled again.
    std::function<void(const std::string& reason)> on_lost;
    // The chief doesn't want us and won't: another cluster, another version. Nothing more is tried.
    std::function<void(const Error& why)> on_refused;
    // The first of a row of attempts has failed.
    std::function<void(const std::string& reason)> on_unreachable;
    // A message too big for any frame was dropped.
    std::function<void(const Error& why)> on_unsent;
  };

  // Reports wait here while the chief is away; more of them are dropped, oldest first.
  static constexpr std::size_t kMaxWaiting = 256;
  // What may lie unsent before heartbeats and logs are held back.
  static constexpr std::size_t kMaxQueuedBytes = std::size_t{4} << 20;

  ChiefLink(asio::io_context& loop, transport::Transport& transport, std::string address, Timeouts timeouts,
            Handlers handlers);
  ~ChiefLink() override;

  void open();
  // Nothing is called afterwards. What can leave at once still does.
  void close();

  bool is_open() const { return open_; }
  bool has_room() const { return open_ && connection_->queued_bytes() < kMaxQueuedBytes; }
  void set_timeouts(const Timeouts& timeouts) { timeouts_ = timeouts; }

  // A report: if the chief is away, it is told when it is back.
  void tell(wire::ControlMessage message);
  // Only worth something now: dropped unless has_room().
  void tell_now(const wire::ControlMessage& message);
  // The chief has been silent for too long: as if the connection had been lost.
  void drop(const std::string& reason);

 private:
  void on_answer(const wire::HelloAnswer& answer) override;
  void on_message(wire::ControlMessage message) override {
    if (open_) handlers_.on_message(std::move(message));
  }
  void on_closed(const Error& why) override { lost(why.message); }

  void dial();
  void lost(const std::string& reason);
  void drop_connection();

  asio::io_context& loop_;
  transport::Transport& transport_;
  const std::string address_;
  const Handlers handlers_;
  Timeouts timeouts_;
  asio::steady_timer timer_;     // the hello's answer, or the pause before the next attempt
  std::shared_ptr<bool> alive_;  // shared with callbacks that may come after the end
  std::uint64_t attempt_ = 0;
  bool open_ = false;
  bool said_unreachable_ = false;
  Duration pause_;
  std::deque<wire::ControlMessage> waiting_;
  std::unique_ptr<transport::ControlLink> connection_;
};

}  // namespace disttrain::workerd
