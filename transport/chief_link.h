// The control connection that a ps or a worker keeps to its chief: dials, says hello, and dials again, with pauses that
// double, whenever the connection is lost or the chief silent. Nothing of a job hangs on it: while the chief is away
// training goes on. Whom it obeys: obedience.h.
//
// What may be lost: a report that was written to a connection which then broke. The chief repeats what it asked and has
// no answer to; whoever answers must be ready to be asked twice.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/messages/session.h"
#include "common/timeouts.h"
#include "transport/connection.h"
#include "transport/control_link.h"
#include "transport/obedience.h"
#include "transport/wire/codec.h"

namespace disttrain::transport {

class ChiefLink final : private ControlHandler {
 public:
  // Called on the loop, never from within a call to the link.
  struct Handlers {
    std::function<Hello()> make_hello;  // asked at each attempt; obedience() goes into it
    // Registered, for the first time or again, with a chief of a term that we obey.
    std::function<void(const Welcome&)> on_welcome;
    // Before on_welcome: the chief has another journal than the one we knew, or one that parted from it; whatever we
    // hold is unknown to it.
    std::function<void()> on_other_journal;
    std::function<void(wire::ControlMessage)> on_message;
    // The chief doesn't want us and won't: another cluster, another version, a place that is taken. Nothing more is
    // tried.
    std::function<void(const Error& why)> on_refused;
    // The connection is lost, or the first of a row of attempts has failed; it is dialled (again).
    std::function<void(const std::string& why)> on_away;
    // A message too big for any frame was dropped.
    std::function<void(const Error& why)> on_unsent;
  };

  // Reports wait here while the chief is away; of more, the oldest are dropped.
  static constexpr std::size_t kMaxWaiting = 256;
  // What may lie unsent before heartbeats and logs are held back.
  static constexpr std::size_t kMaxQueuedBytes = std::size_t{4} << 20;
  // A chief answers every heartbeat; one of which nothing came for so many heartbeat timeouts is dialled anew.
  static constexpr int kSilentTimeouts = 5;
  static constexpr std::chrono::seconds kQuietStart{5};

  // `loop` and `transport` outlive it. Belongs to the loop.
  ChiefLink(asio::io_context& loop, Transport& transport, std::string address, const Timeouts& timeouts,
            Handlers handlers);
  ~ChiefLink() override;

  void open() {
    opened_ = std::chrono::steady_clock::now();
    dial();
  }
  // Nothing is called afterwards. What can leave at once still does.
  void close();

  // Says hello anew, at once: what make_hello() says has changed.
  void redial();

  // Registered with a chief, at this moment.
  bool is_registered() const { return open_; }
  // No chief is there: it was dialled in vain, or the first attempt takes so long that nobody should wait for its end.
  bool is_waiting() const {
    return !open_ && (said_away_ || (opened_ && std::chrono::steady_clock::now() - *opened_ > kQuietStart));
  }
  // Registered, and room for what is only worth something now.
  bool has_room() const { return open_ && connection_->queued_bytes() < kMaxQueuedBytes; }
  // A report waits for a chief that is away. Heartbeats, log lines, accusations and requests for leases are dropped
  // unless has_room(): they are said again.
  void tell(wire::ControlMessage message);

  const Timeouts& timeouts() const { return timeouts_; }  // the chief's, once it is known
  // Those of this task's own file have changed. They hold where no chief says others.
  void set_own_timeouts(const Timeouts& timeouts) {
    if (!open_) timeouts_ = timeouts;
  }
  const Obedience& obedience() const { return obedience_; }

 private:
  void on_answer(const wire::HelloAnswer& answer) override;
  void on_message(wire::ControlMessage message) override;
  void on_closed(const Error& why) override { lost(why.message); }

  void dial();
  void welcomed(const Welcome& welcome);
  void turned_away(const std::string& why);
  void lost(const std::string& why);
  void drop_connection();
  void watch_silence();

  asio::io_context& loop_;
  Transport& transport_;
  const std::string address_;
  const Handlers handlers_;

  Timeouts timeouts_;
  Obedience obedience_;
  asio::steady_timer timer_;  // the hello's answer, or the pause before the next attempt, or the chief's silence
  Duration pause_;
  std::chrono::steady_clock::time_point heard_;
  std::uint64_t attempt_ = 0;  // what an earlier one still has under way is known by its number
  std::optional<std::chrono::steady_clock::time_point> opened_;
  bool open_ = false;
  bool said_away_ = false;
  std::string said_refusal_;  // the last one since it was registered
  std::deque<wire::ControlMessage> waiting_;
  std::unique_ptr<ControlLink> connection_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with callbacks that may come after the end
};

}  // namespace disttrain::transport
