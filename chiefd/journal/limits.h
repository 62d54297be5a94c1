// The limits of the journal's parts. A write that couldn't be read back is refused.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chiefd/core/journal_state.h"
#include "transport/wire/frame.h"

namespace disttrain::chiefd {

// The largest record describes a model. The wire bounds the model; 1 MiB is for the rest of the record.
inline constexpr std::size_t kMaxRecordBytes = wire::kMaxBlobBytes + (1 << 20);
// A batch takes records up to this size. A larger record has a batch of its own.
inline constexpr std::size_t kBatchBytes = 1 << 20;
// The longest batch. A larger length is damage.
inline constexpr std::size_t kMaxBatchBytes = kMaxRecordBytes + 4;
// The longest text except a job's file: names, paths, and reasons and sentences of peers and people. bounded() cuts
// reasons and sentences to this size.
inline constexpr std::size_t kMaxJournalTextBytes = 4096;
// The largest job file. The wire's limit is smaller (kMaxJobTomlBytes).
inline constexpr std::size_t kMaxJournalTomlBytes = wire::kMaxBlobBytes;
// The most leases of one generation that aren't used up.
inline constexpr std::size_t kMaxOpenGrants = 1 << 20;
// A batch up to this size is written twice in one write.
inline constexpr std::size_t kMaxCopiedBytes = (16 << 10) - 24;

// Cuts long texts of a record that a peer or person wrote, and notes the cut in the text. A job's file and paths are
// never cut: that would make it another job.
Record bounded(Record record);

}  // namespace disttrain::chiefd
