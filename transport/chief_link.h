// The control connection that a ps or a worker keeps to its chief. It dials and says hello. Whenever the connection is
// lost or the chief is silent, it dials again, with pauses that double. Training goes on while the chief is away. Which
// chief a task obeys: obedience.h.
//
// A report that was written to a connection which then broke may be lost. The chief repeats each order that it has no
// answer to, so a task must be ready to be asked twice.
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
    std::function<Hello()> make_hello;  // called for each hello; must include obedience()
    // Registered, for the first time or again, with a chief whose term this task obeys.
    std::function<void(const Welcome&)> on_welcome;
    // Before on_welcome: the chief's journal isn't the one that this task knew, or has diverged from it, so the chief
    // doesn't know what the task holds.
    std::function<void()> on_other_journal;
    std::function<void(wire::ControlMessage)> on_message;
    // The chief refuses this task for good: another cluster, another version, a place that is taken. The link doesn't
    // dial again.
    std::function<void(const Error& why)> on_refused;
    // The connection is lost, or the first of several attempts has failed. The link dials (again).
    std::function<void(const std::string& why)> on_away;
    // A message too big for any frame was dropped.
    std::function<void(const Error& why)> on_unsent;
  };

  // Reports that wait while the chief is away; beyond this number the oldest are dropped.
  static constexpr std::size_t kMaxWaiting = 256;
  // Unsent bytes from which on heartbeats and logs are held back.
  static constexpr std::size_t kMaxQueuedBytes = std::size_t{4} << 20;
  // A chief answers every heartbeat. A chief that was silent for this many heartbeat timeouts is dialled anew.
  static constexpr int kSilentTimeouts = 5;
  static constexpr std::chrono::seconds kQuietStart{5};

  // `loop` and `transport` outlive the link. Belongs to the loop.
  ChiefLink(asio::io_context& loop, Transport& transport, std::string address, const Timeouts& timeouts,
            Handlers handlers);
  ~ChiefLink() override;

  void open() {
    opened_ = std::chrono::steady_clock::now();
    dial();
  }
  // No handler is called afterwards. Queued messages that the socket takes at once are still sent.
  void close();

  // Says hello again at once, because the answer of make_hello() has changed.
  void redial();

  // Whether the task is registered with a chief now.
  bool is_registered() const { return open_; }
  // No chief is there: an attempt failed, or the first attempt takes too long to wait for.
  bool is_waiting() const {
    return !open_ && (said_away_ || (opened_ && std::chrono::steady_clock::now() - *opened_ > kQuietStart));
  }
  // Registered, and there is room for messages that are only useful now.
  bool has_room() const { return open_ && connection_->queued_bytes() < kMaxQueuedBytes; }
  // Sends a message. A report waits while the chief is away. Heartbeats, log lines, accusations and requests for leases
  // are dropped unless has_room(): the task repeats them.
  void tell(wire::ControlMessage message);

  const Timeouts& timeouts() const { return timeouts_; }  // the chief's, once known
  // The timeouts of this task's own file have changed. They apply until a chief sends its own.
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
  asio::steady_timer timer_;  // waits for the hello's answer, the next attempt, or the chief's silence
  Duration pause_;
  std::chrono::steady_clock::time_point heard_;
  std::uint64_t attempt_ = 0;  // callbacks of an earlier attempt carry an older number and do nothing
  std::optional<std::chrono::steady_clock::time_point> opened_;
  bool open_ = false;
  bool said_away_ = false;
  std::string said_refusal_;  // the last refusal that was logged since the task was registered
  std::deque<wire::ControlMessage> waiting_;
  std::unique_ptr<ControlLink> connection_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with callbacks that may outlive the link
};

}  // namespace disttrain::transport
