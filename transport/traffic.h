// The number of bytes that all connections of a transport have received and sent, closed connections too.
#pragma once

#include <atomic>
#include <cstdint>

namespace disttrain::transport {

// The connections' threads increment the counters, and any thread may read them. The counters are in two cache lines,
// so that threads that receive don't slow down threads that send.
struct Traffic {
  alignas(64) std::atomic<std::uint64_t> received = 0;
  alignas(64) std::atomic<std::uint64_t> sent = 0;
};

}  // namespace disttrain::transport
