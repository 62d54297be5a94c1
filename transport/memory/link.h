// The state that the two ends of a memory connection share; only transport/memory uses it. Frames that are sent to an
// end wait in its inbox. The receiver copies a payload straight from the sender's memory and holds the lock meanwhile.
// A sender that closes takes the same lock, so its memory stays valid during the copy.
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
  Bytes payload;                // in the sender's memory, or in `copy`
  std::vector<std::byte> copy;  // the payload of a kCopied frame
  bool frozen = false;          // if true, the sender gets on_sent(cookie) when the payload is read, unless cookie is 0
  std::uint64_t cookie = 0;
  std::size_t bytes = 0;  // size of the whole frame
};

struct MemoryLink {
  struct End {
    bool open = true;
    std::shared_ptr<Traffic> traffic;  // the counters of the end's transport; set before the end is used
    std::function<void()> wake;        // posts a turn to the end's loop; empty while the end has no loop or is closed
    std::deque<MemoryFrame> inbox;
    std::size_t inbox_bytes = 0;
    std::uint64_t frames = 0;         // number of frames that were ever put into the inbox
    std::vector<std::uint64_t> sent;  // cookies for which this end must get on_sent()
  };

  std::mutex mutex;           // guards all members below; it is held at most while one piece is copied
  End ends[2];                // end 0 has dialled, end 1 has accepted
  PeerSlot slot_of_acceptor;  // the slot that end 1 holds while it is open

  // Closes one end. The other end can still read the frames in its inbox that come before the first frozen payload. It
  // can't read that payload, because it is in the memory of the closed end. Call close() with the lock held.
  void close(int end);
  void wake(int end) {
    if (ends[end].wake) ends[end].wake();
  }
};

}  // namespace disttrain::transport
