// A deadline for a thread, or for several, that was told to release a job. A user's bytes may hang the thread: a
// program that loops, a tokenizer that doesn't end, a FIFO that nobody writes, a file server that is gone. A thread
// can't be ended from outside, so the process has to end, and its next process begins without the job.
//
// Belongs to the main loop.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/daemon/clock.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain::daemon {

// How long a thread that was told to release a job may stand still. It is less than Timeouts::close with the default
// heartbeat timeout, so that the chief hears of the process's end before it goes on without the worker.
inline constexpr Duration kReleasePatience = std::chrono::seconds(4);
// How long the release may take in all. The end of a trainer takes up to 10 s, and moves meanwhile.
inline constexpr Duration kLongestRelease = std::chrono::seconds(30);

// The exit code of a process whose thread hangs. systemd and `disttrain up` start the process again.
inline constexpr int kHungCode = static_cast<int>(ErrorCode::kTemporary);

class ReleaseDeadline {
 public:
  struct Thread {
    std::function<void(std::function<void()>)> post;  // runs a function on the thread, after all orders so far
    // A number that grows while the thread moves. Any thread may call it.
    std::function<std::uint64_t()> turns;
    std::function<Instant()> now = daemon::now;
  };

  // Calls `on_missed` on the loop, once, with the limit that the thread has missed, to follow "the thread, which":
  // "hasn't moved for 4 s", or "moves, but hasn't released it within 30 s". `loop` must outlive this object.
  // `thread.post` isn't called after this object's end, but a function that was posted before may run then.
  ReleaseDeadline(asio::io_context& loop, Thread thread, std::function<void(const std::string& what)> on_missed,
                  Duration longest = kLongestRelease);
  ~ReleaseDeadline();
  ReleaseDeadline(const ReleaseDeadline&) = delete;

  // The thread was told to release a job. It must get to the end of its orders so far, and may stand still for at most
  // `patience` until then. If an earlier release isn't over, the shorter patience holds for both, from the call that
  // brought it.
  void begin(Duration patience = kReleasePatience);
  // True from begin() until the thread has obeyed.
  bool is_pending() const { return pending_ > 0; }

 private:
  void answered();
  void check();

  asio::io_context& loop_;
  const Thread thread_;
  const std::function<void(const std::string&)> on_missed_;
  const Duration longest_;
  asio::steady_timer timer_;
  std::shared_ptr<bool> alive_;  // shared with the functions on the thread
  std::uint64_t pending_ = 0;    // releases that aren't over
  bool has_missed_ = false;
  Duration patience_{};
  Instant checked_;   // when check() ran last
  Duration age_{};    // of the release
  Duration stood_{};  // the part of age_ since `turns_` was new
  std::uint64_t turns_ = 0;
};

}  // namespace disttrain::daemon
