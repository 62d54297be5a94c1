// Bytes of all connections of a transport, those that are closed too.
#pragma once

#include <atomic>
#include <cstdint>

namespace disttrain::transport {

// Counted by the threads of the connections, read by any. Two cache lines: those who receive don't slow those who send.
struct Traffic {
  alignas(64) std::atomic<std::uint64_t> received = 0;
  alignas(64) std::atomic<std::uint64_t> sent = 0;
};

}  // namespace disttrain::transport
