// The accounts of receive slots. A SEND for which the peer has no receive slot would stop the queue pair. So each end
// knows how many slots the other one has left: its credits. Messages that only return credits need none, because both
// ends have a few slots more for them: an end sends such a message only when it has emptied half of its slots, so at
// most two of them can be on their way before the peer has taken one.
#pragma once

#include <cstdint>

#include "common/result.h"

namespace disttrain::transport {

class RdmaCredits {
 public:
  // `own`: the slots of this end. `peer`: those of the other one.
  RdmaCredits(std::uint32_t own, std::uint32_t peer) : own_(own), peer_(peer), left_(peer) {}

  // ---- Sending.
  bool may_send() const { return left_ > 0; }
  // Only if may_send().
  void sent() {
    --left_;
    ++sent_;
  }
  // The peer returns credits. kData: more than it was sent messages.
  Status returned(std::uint32_t credits);
  // Number of all messages that were sent, and of those that the peer has read. It reads them in order.
  std::uint64_t all_sent() const { return sent_; }
  std::uint64_t all_read() const { return sent_ - (peer_ - left_); }

  // ---- Receiving.
  // A message that needs a credit has arrived. kData: the peer had none left.
  Status arrived();
  // A slot is empty and can receive again. It was counted by arrived().
  void emptied() { ++emptied_; }
  // True if a message must return the credits, because the peer may wait for them.
  bool must_return() const { return emptied_ >= own_ / 2 && emptied_ > 0; }
  // The credits that the next message returns. Call it only for a message that is then sent.
  std::uint16_t take_returned();

 private:
  const std::uint32_t own_;
  const std::uint32_t peer_;
  std::uint32_t left_;  // slots of the peer
  std::uint64_t sent_ = 0;
  std::uint32_t used_ = 0;     // slots of this end that the peer has used and has not got back
  std::uint32_t emptied_ = 0;  // those of them that are empty again
};

}  // namespace disttrain::transport
