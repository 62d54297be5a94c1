// Every bound on what a peer may send, on one page. transport/wire checks them: an encoder refuses to write more
// (sentences are truncated instead), a decoder refuses to read more. So no peer chooses what its message costs (I27).
// The sizes of frames are in transport/wire/frame.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.h"

namespace disttrain {

// --- Texts, in bytes.

inline constexpr std::size_t kMaxTextBytes = 4096;           // a name, an address, a path, a sentence, a log line
inline constexpr std::size_t kMaxProblemsBytes = 16 * 1024;  // a refusal: it may list many problems of one file
inline constexpr std::size_t kMaxJobTomlBytes = 256 * 1024;
inline constexpr std::size_t kMaxJsonBytes = 64 * 1024 * 1024;  // an answer of the chief

// --- Lists, in entries.

inline constexpr std::size_t kMaxMembers = 1024;           // of a roster, a staged set
inline constexpr std::uint32_t kMaxOfferedShards = 4096;   // of one ps
inline constexpr std::size_t kMaxVisited = 2048;           // intervals of one push
inline constexpr std::size_t kMaxIntervals = 1024 * 1024;  // of a lease, of a whole ledger
inline constexpr std::size_t kMaxEpochs = 64 * 1024;       // open ones of a ledger
inline constexpr std::size_t kMaxVariables = 64 * 1024;
inline constexpr std::size_t kMaxDimensions = 16;
inline constexpr std::size_t kMaxBuckets = 1024 * 1024;
inline constexpr std::size_t kMaxShards = 64 * 1024;
inline constexpr std::size_t kMaxLogLines = 64 * 1024;
inline constexpr std::size_t kMaxTurns = 4096;
inline constexpr std::size_t kMaxWarnings = 16;
inline constexpr std::size_t kMaxChunks = 4 * 1024 * 1024;  // of a checkpoint's file

// --- Numbers.

inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 37;        // of a model; its buckets hold fewer
inline constexpr std::uint64_t kMaxRecords = std::uint64_t{1} << 48;         // of a data set
inline constexpr Duration kMaxDuration = std::chrono::hours(10 * 365 * 24);  // a sum of several doesn't overflow

// --- What a message may cost to read. The reader may follow its pointers for as many words as the message has, so that
// pointers to one shared target can't turn a small message into a large value. Our own messages share no target.

inline constexpr std::size_t kTraversalSlackWords = 64;
inline constexpr int kMaxNesting = 16;

}  // namespace disttrain
