// Waiting for events of a loop without sleeping. To wake a sleeping thread takes 30 to 50 us, which is long beside a
// step of 200 us. So a thread whose events come quickly polls for them.
//
// It gives way when its core is wanted: it calls sched_yield(), and if that takes long, another thread has run. Then it
// sleeps in its next waits, and tries again later.
#pragma once

#include <asio/io_context.hpp>
#include <cstddef>
#include <cstdint>

#include "common/time.h"

namespace disttrain::transport {

// Says that this thread's loop has connections through shared memory. Then polling pays for longer, because the answers
// take little time beside the wake-ups. Counts the objects that live on this thread; make and destroy each on the
// loop's thread.
class SpinReason {
 public:
  SpinReason() { ++count_; }
  ~SpinReason() { --count_; }
  SpinReason(const SpinReason&) = delete;
  SpinReason& operator=(const SpinReason&) = delete;
  static bool exists() { return count_ > 0; }

 private:
  static thread_local std::size_t count_;
};

// One for each thread that runs a loop.
class Spinner {
 public:
  // Runs one handler of the loop, as loop.run_one() does, but may poll before it sleeps.
  std::size_t run_one(asio::io_context& loop);

 private:
  // Spins only if events usually come within this time; kLongestOnHost applies if a SpinReason exists.
  static constexpr Duration kLongest = std::chrono::microseconds(60);
  static constexpr Duration kLongestOnHost = std::chrono::microseconds(400);
  // A call of sched_yield() that takes longer has let another thread run.
  static constexpr Duration kStolen = std::chrono::microseconds(10);
  static constexpr std::uint32_t kFirstRest = 16;
  static constexpr std::uint32_t kLongestRest = 4096;

  std::size_t sleep(asio::io_context& loop, Instant since);
  void waited(Duration time);

  Duration typical_ = kLongestOnHost;  // a moving average of the time until an event comes
  std::uint32_t rest_ = 0;             // the number of waits in which it won't spin
  std::uint32_t next_rest_ = kFirstRest;
};

}  // namespace disttrain::transport
