// The control connection to the chief: dials, says hello, and dials again whenever it is lost, for ever, with pauses
// that double. Belongs to the main loop. Nothing of a job hangs on it: while the chief is away training goes on.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/daemon/log.h"
#include "common/messages/session.h"
#include "common/timeouts.h"
#include "transport/connection.h"
#include "transport/control_link.h"
#include "transport/wire/codec.h"

namespace disttrain::psd {

class ChiefLinkOwner {
 public:
  virtual ~ChiefLinkOwner() = default;
  // What to say now; asked at each attempt.
  virtual Hello hello() = 0;
  virtual void on_welcome(const Welcome& welcome) = 0;
  // It will not have us, and trying again won't help.
  virtual void on_refused(const Refused& refused) = 0;
  virtual void on_message(const wire::ControlMessage& message) = 0;
};

class ChiefLink final : private transport::ControlHandler {
 public:
  // All references outlive it. Dials when start() is called.
  ChiefLink(asio::io_context& loop, transport::Transport& transport, std::string address, const Timeouts& timeouts,
            daemon::Log& log, ChiefLinkOwner& owner);
  ~ChiefLink() override;

  void start() { dial(); }
  // Welcomed and not lost since.
  bool open() const { return open_; }
  // Dropped while the link isn't open.
  void send(const wire::ControlMessage& message);
  std::size_t queued_bytes() const { return connection_ ? connection_->queued_bytes() : 0; }
  // The chief's, once it is known.
  void set_timeouts(const Timeouts& timeouts) { timeouts_ = timeouts; }

 private:
  void dial();
  void wait_for_answer();
  void on_answer(const wire::HelloAnswer& answer) override;
  void on_message(wire::ControlMessage message) override {
    if (open_) owner_.on_message(message);
  }
  void on_closed(const Error& why) override { lost(why.message); }
  void lost(const std::string& why);
  void drop_connection();

  asio::io_context& loop_;
  transport::Transport& transport_;
  const std::string address_;
  daemon::Log& log_;
  ChiefLinkOwner& owner_;

  Timeouts timeouts_;
  asio::steady_timer timer_;  // the hello's answer, or the pause before the next attempt
  Duration pause_;
  std::uint64_t attempt_ = 0;  // what an earlier one still has under way is known by its number
  bool open_ = false;
  bool told_ = false;  // that the chief can't be reached: said once per absence
  std::unique_ptr<transport::ControlLink> connection_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with callbacks that may come after the end
};

}  // namespace disttrain::psd
