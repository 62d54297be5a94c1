// The control connection that a ps or a worker keeps to its chief. The link dials the chief and says hello. Whenever
// the connection breaks or the chief is silent, the link dials again; the pause between two attempts doubles each time.
// Training goes on meanwhile. obedience.h says which chief a task obeys.
//
// If the connection breaks, the last reports that the task has sent may be lost. The chief repeats each order for which
// it has no answer, so a task may get an order twice.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/messages/session.h"
#include "common/timeouts.h"
#include "common/trace/clock_offset.h"
#include "transport/connection.h"
#include "transport/control_link.h"
#include "transport/obedience.h"
#include "transport/wire/codec.h"

namespace disttrain::transport {

class ChiefLink final : private ControlHandler {
 public:
  // The link calls the handlers on the loop. It may call make_hello and on_unsent before open() or tell() returns, but
  // it calls no other handler during a call to the link.
  struct Handlers {
    std::function<Hello()> make_hello;  // makes each hello; the hello must include the values of obedience()
    // The task is registered, for the first time or again, with a chief that it obeys.
    std::function<void(const Welcome&)> on_welcome;
    // The chief doesn't know what the task holds, because the chief's journal isn't the one that the task knew, or has
    // diverged from that one. Called before on_welcome.
    std::function<void()> on_other_journal;
    std::function<void(wire::ControlMessage)> on_message;
    // The chief refuses this task for good, and the link doesn't dial again. For example, the task is of another
    // cluster or version, or another process holds its place.
    std::function<void(const Error& why)> on_refused;
    // The connection is lost, or the first attempt to dial has failed. The link dials again. The handler isn't called
    // for further failed attempts.
    std::function<void(const std::string& why)> on_away;
    // The link has dropped a message, because it was too big for any frame.
    std::function<void(const Error& why)> on_unsent;
    // The link has dropped a message of the chief that it can't read. Called once for each of the first kMaxUnread
    // reasons since the task was registered, because the chief repeats its orders.
    std::function<void(const Error& why)> on_unread;
  };

  // How many reports may wait while no chief is connected. If there are more, the link drops the oldest.
  static constexpr std::size_t kMaxWaiting = 256;
  static constexpr std::size_t kMaxUnread = 16;
  // While this many bytes are queued and unsent, the link sends no heartbeats and log lines.
  static constexpr std::size_t kMaxQueuedBytes = std::size_t{4} << 20;
  // The chief answers every heartbeat. If nothing has come from it for this many heartbeat timeouts, the link dials
  // again.
  static constexpr int kSilentTimeouts = 5;
  static constexpr std::chrono::seconds kQuietStart{5};

  // `loop` and `transport` must outlive the link. The link belongs to `loop`.
  ChiefLink(asio::io_context& loop, Transport& transport, std::string address, const Timeouts& timeouts,
            Handlers handlers);
  ~ChiefLink() override;

  void open() {
    opened_ = std::chrono::steady_clock::now();
    dial();
  }
  // Closes the connection. No handler is called after that. Queued messages are sent as far as the socket takes them at
  // once.
  void close();

  // Says hello again at once, because the answer of make_hello() has changed.
  void redial();

  // Returns true if the task is registered with a chief now.
  bool is_registered() const { return open_; }
  // Returns true if the task is known to have no chief: an attempt has failed, or the first attempt takes longer than
  // kQuietStart.
  bool is_waiting() const {
    return !open_ && (said_away_ || (opened_ && std::chrono::steady_clock::now() - *opened_ > kQuietStart));
  }
  // Returns true if the task is registered and few bytes are queued. Otherwise tell() drops the messages that the task
  // repeats.
  bool has_room() const { return open_ && connection_->queued_bytes() < kMaxQueuedBytes; }
  // Sends a message. If no chief is connected, a report waits. Heartbeats, log lines, accusations and requests for
  // leases never wait: the link drops them if has_room() is false, because the task repeats them.
  void tell(wire::ControlMessage message);

  const Timeouts& timeouts() const { return timeouts_; }  // the chief's timeouts, once the chief has sent them
  // The timeouts in this task's own cluster.toml have changed. They apply until a chief sends its own.
  void set_own_timeouts(const Timeouts& timeouts) {
    if (!open_) timeouts_ = timeouts;
  }
  const Obedience& obedience() const { return obedience_; }
  // How far the chief's clock is ahead of this task's, from the heartbeats. None before the first answer.
  std::optional<ClockOffset> clock_offset() const;

 private:
  void on_answer(const wire::HelloAnswer& answer) override;
  void on_message(wire::ControlMessage message) override;
  void on_dropped(const Error& why) override;
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
  // Limits the wait for the hello's answer, ends the pause before the next attempt, or notices a silent chief.
  asio::steady_timer timer_;
  Duration pause_;
  std::chrono::steady_clock::time_point heard_;
  std::uint64_t attempt_ = 0;  // number of this attempt to dial; callbacks of earlier attempts do nothing
  std::optional<std::chrono::steady_clock::time_point> opened_;
  bool open_ = false;
  bool said_away_ = false;
  std::string said_refusal_;           // the last refusal that was logged since the task was registered
  std::set<std::string> said_unread_;  // the reasons that on_unread() told since the task was registered
  std::deque<wire::ControlMessage> waiting_;
  ClockEstimate clock_;
  std::unique_ptr<ControlLink> connection_;
  // False once the link is closed. Callbacks share it, because they may run after that.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace disttrain::transport
