// All bounds on the messages that a peer may send. transport/wire checks them. A decoder refuses a message that exceeds
// a bound. An encoder refuses to write such a message, except that it truncates free text (errors, log lines). So no
// peer decides how much memory or time its messages cost (I27). The bounds on frames are in transport/wire/frame.h.
//
// A sender truncates long text itself, so our own daemons never lose a connection because of it. The codec also
// replaces characters that can't be printed. Log lines are made printable once more when they are written, because they
// may quote files.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.h"

namespace disttrain {

// --- Texts, in bytes.

inline constexpr std::size_t kMaxTextBytes = 4096;  // a name, an address, a path, an error text or a log line
// the text of a refusal, which may list many problems of a file
inline constexpr std::size_t kMaxProblemsBytes = 16 * 1024;
inline constexpr std::size_t kMaxJobTomlBytes = 256 * 1024;
inline constexpr std::size_t kMaxKeptColumnsBytes = 8 * 1024 * 1024;  // columns.cbor of a checkpoint (kept_columns.h)
inline constexpr std::size_t kMaxJsonBytes = 64 * 1024 * 1024;        // an answer of the chief

// --- Lists, in entries.

inline constexpr std::size_t kMaxMembers = 1024;           // of a roster, a staged set
inline constexpr std::uint32_t kMaxOfferedShards = 4096;   // of one ps
inline constexpr std::size_t kMaxVisited = 2048;           // intervals of one push
inline constexpr std::size_t kMaxIntervals = 1024 * 1024;  // of a lease, of a whole ledger
inline constexpr std::size_t kMaxEpochs = 64 * 1024;       // open ones of a ledger
// True if a ledger with this number of complete epochs may have an entry of this epoch.
constexpr bool may_be_in_ledger(std::uint32_t epoch, std::uint32_t complete) {
  return epoch < UINT32_MAX && epoch < std::uint64_t{complete} + kMaxEpochs;
}
inline constexpr std::size_t kMaxVariables = 64 * 1024;
inline constexpr std::size_t kMaxColumns = 4096;  // of a batch
inline constexpr std::size_t kMaxDimensions = 16;
inline constexpr std::size_t kMaxBuckets = 1024 * 1024;
inline constexpr std::size_t kMaxShards = 64 * 1024;
inline constexpr std::size_t kMaxLogLines = 64 * 1024;
inline constexpr std::size_t kMaxTurns = 4096;
inline constexpr std::size_t kMaxWarnings = 16;
inline constexpr std::size_t kMaxChunks = 4 * 1024 * 1024;  // of a checkpoint's file

// --- Numbers.

inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 37;  // of a model
inline constexpr std::uint64_t kMaxRecords = std::uint64_t{1} << 48;   // of a data set
// the longest duration in a message; a sum of several of them doesn't overflow
inline constexpr Duration kMaxDuration = std::chrono::hours(10 * 365 * 24);

// --- Cost of reading a message. Cap'n Proto counts the words that a reader visits through pointers. We limit this
// count to the size of the message. Without the limit, many pointers to the same object could make a small message
// decode to a huge value. Our own messages never point to an object twice.

inline constexpr std::size_t kTraversalSlackWords = 64;
inline constexpr int kMaxNesting = 16;

}  // namespace disttrain
