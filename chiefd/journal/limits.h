// How large a part of the journal may be. The journal refuses at the write what it couldn't read back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chiefd/core/journal_state.h"
#include "transport/wire/frame.h"

namespace disttrain::chiefd {

// The largest record describes a model. The wire bounds that; 1 MiB is for what stands around it.
inline constexpr std::size_t kMaxRecordBytes = wire::kMaxBlobBytes + (1 << 20);
// A batch takes records up to this size. A larger record has a batch of its own.
inline constexpr std::size_t kBatchBytes = 1 << 20;
// No batch is longer: the length of one that says so is damaged.
inline constexpr std::size_t kMaxBatchBytes = kMaxRecordBytes + 4;
// Any text but a job's file: names, paths, and the reasons and sentences that peers and people wrote. bounded() cuts
// reasons and sentences to it.
inline constexpr std::size_t kMaxJournalTextBytes = 4096;
// A job's file. The wire takes smaller ones only (kMaxJobTomlBytes).
inline constexpr std::size_t kMaxJournalTomlBytes = wire::kMaxBlobBytes;
// Leases of one generation that aren't used up.
inline constexpr std::size_t kMaxOpenGrants = 1 << 20;
// A batch up to this size is written twice in one write.
inline constexpr std::size_t kMaxCopiedBytes = (16 << 10) - 24;

// Cuts the texts of a record that somebody else wrote, and says so in their place. A job's file and paths stay as they
// are: the job would be another one.
Record bounded(Record record);

}  // namespace disttrain::chiefd
