// Bytes of all connections of a transport, closed ones too.
#pragma once

#include <atomic>
#include <cstdint>

namespace disttrain::transport {

// Counted by the connections' threads, read by any. Two cache lines, so that receivers don't slow senders.
struct Traffic {
  alignas(64) std::atomic<std::uint64_t> received = 0;
  alignas(64) std::atomic<std::uint64_t> sent = 0;
};

}  // namespace disttrain::transport
