// ClockEstimate: how far the chief's clock is ahead of this task's clock, from the heartbeats and their answers. It
// works as NTP does (RFC 5905, section 8), with one time stamp of the chief: the chief reads its clock at some moment
// between the sending of the heartbeat and the arrival of the answer. So with t1 and t4 by the task's clock and t2 by
// the chief's, the offset lies in [t2 - t4, t2 - t1]. Half of this range, the half round trip, is the uncertainty. The
// answer with the shortest round trip knows best. Clocks drift apart by at most kDrift, so an older answer knows less.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/messages/trace.h"
#include "common/time.h"

namespace disttrain {

class ClockEstimate {
 public:
  // Of so many answers the best counts. With ten heartbeats in each timeout of 1 s they are those of 6 s.
  static constexpr std::size_t kAnswers = 64;
  // By how much two clocks drift apart in a second, in nanoseconds: 100 ppm. Quartz clocks have 50 ppm each at most.
  static constexpr std::int64_t kDrift = 100'000;

  // An answer has arrived. `sent` and `arrived` are of this task's clock, `chief` is of the chief's. Ignores an answer
  // that can't be right, because it arrives before its heartbeat was sent.
  void hear(Instant sent, Instant chief, Instant arrived);
  // Another chief answers from now on.
  void forget() { size_ = next_ = 0; }
  // The offset now. None before the first answer. If 0 is possible, the offset is 0: then both clocks are probably the
  // clock of one host, and a trace of this host is exact.
  std::optional<ClockOffset> best(Instant now) const;

 private:
  struct Answer {
    ClockOffset clock;
    Instant arrived;
  };
  std::array<Answer, kAnswers> answers_{};
  std::size_t size_ = 0;
  std::size_t next_ = 0;
};

}  // namespace disttrain
