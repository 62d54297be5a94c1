// Inside memory: what the two ends of a connection share. Frames on their way to an end wait in its inbox. The receiver
// copies a payload straight from the sender's memory, under the lock that a closing sender takes too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/connection.h"
#include "transport/peer_limit.h"

namespace disttrain::transport {

struct MemoryFrame {
  std::uint64_t number = 0;
  wire::FrameHeader header;
  std::vector<std::byte> control;
  Bytes payload;                // the sender's memory, or `copy`
  std::vector<std::byte> copy;  // with kCopied
  bool frozen = false;          // on_sent(cookie) is due once the payload is read, except for cookie 0
  std::uint64_t cookie = 0;
  std::size_t bytes = 0;  // of the whole frame
};

struct MemoryLink {
  struct End {
    bool open = true;
    std::shared_ptr<Traffic> traffic;  // of the end's transport; set before the end is used
    std::function<void()> wake;        // posts a turn to the end's loop; none before it has one and once it is closed
    std::deque<MemoryFrame> inbox;
    std::size_t inbox_bytes = 0;
    std::uint64_t frames = 0;         // ever put into the inbox
    std::vector<std::uint64_t> sent;  // cookies to report to this end
  };

  std::mutex mutex;           // guards all below; held at most for one copy
  End ends[2];                // 0 dialled, 1 accepted
  PeerSlot slot_of_acceptor;  // of end 1, while it is open

  // Closes one end. Frames that the other end can still read: those that own their bytes, up to the first frozen one.
  // Call with the lock held.
  void close(int end);
  void wake(int end) {
    if (ends[end].wake) ends[end].wake();
  }
};

}  // namespace disttrain::transport
