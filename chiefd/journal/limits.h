// The limits of a journal and its parts. The chief refuses to write a record that is too long to be read back. Nothing
// refuses to write a journal that is too long: the jobs that the chief remembers bound its state, and
// JournalFile::rewrite_if_far_grown() bounds the journal by its state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chiefd/core/journal_state.h"
#include "transport/wire/frame.h"

namespace disttrain::chiefd {

// The most bytes of a record. The longest records describe a model. The wire limits the description of a model, and 1
// MiB is for the rest of the record.
inline constexpr std::size_t kMaxRecordBytes = wire::kMaxBlobBytes + (1 << 20);
// The writer puts several records into one batch as long as the batch doesn't exceed this size. A longer record gets a
// batch of its own.
inline constexpr std::size_t kBatchBytes = 1 << 20;
// The longest batch. If a batch says that it is longer, the reader treats it as damaged.
inline constexpr std::size_t kMaxBatchBytes = kMaxRecordBytes + 4;
// The longest text of a record, except for a job file. Such texts are names, paths, reasons, and the sentences of
// events. bounded() cuts reasons and sentences to this length.
inline constexpr std::size_t kMaxJournalTextBytes = 4096;
// The longest job file that a record can hold. A submitted job file is shorter, because the wire accepts at most
// kMaxJobTomlBytes.
inline constexpr std::size_t kMaxJournalTomlBytes = wire::kMaxBlobBytes;
// The most leases that one record can list as not used up.
inline constexpr std::size_t kMaxOpenGrants = 1 << 20;
// The longest file of a journal that a chief reads; it takes as much memory. A journal grows to five times the state
// that it holds. So this is enough for 40 jobs with the longest description, and for any number of usual ones.
inline constexpr std::uint64_t kMaxJournalBytes = std::uint64_t{16} << 30;
// The most bytes of a mark that a chief reads. A mark has 32 bytes; one of another length is damaged, and is written
// again.
inline constexpr std::uint64_t kMaxMarkBytes = 4096;
// The longest batch that fits into a copy.
inline constexpr std::size_t kMaxCopiedBytes = (16 << 10) - 24;

// Cuts the reasons and sentences of a record that are too long, and says so at the end of the text. Never cuts a job
// file or a path, because a job with a shortened file or path would be another job.
Record bounded(Record record);

}  // namespace disttrain::chiefd
