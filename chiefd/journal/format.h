// The bytes of the journal's file. A file has a head, two copies of batches, a snapshot, and batches of records.
//
//   0           Here begins the head. It has magic bytes, the version, a checksum, the number of the snapshot's last
//               record, and the length of the snapshot.
//   4096        Here begin copy 0 and copy 1, of 16 KiB each. They hold the newest batch and the batch before it.
//   36864       Here begins the snapshot. Its batches hold the state at the time when the file was written.
//   after that  Here follow the batches that the chief has appended since.
//
// A batch begins with its length, its checksum and the number of its last record. The first record of a journal has the
// number 1, and a rewrite of the file doesn't change the numbers. The chief writes a new batch and its copy at the same
// time, and syncs both with one sync. Only then does it acknowledge the records. When a reader finds a bad batch, it
// decides:
//
//   1. The copy of the batch is good: the reader takes the batch from the copy.
//   2. The batch is the newest one, and its copy is bad too: a crash interrupted the write, and the chief never
//      acknowledged its records. The reader cuts the batch off.
//   3. The batch isn't the newest one: the file is damaged.
//
// If a batch is too large for a copy, the chief syncs the batch first. It then writes a copy that holds only the
// batch's number.
//
// These functions do no I/O. Those that read accept any bytes, and check all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/result.h"

namespace disttrain::chiefd {

// The length of a file without records.
inline constexpr std::size_t kJournalHeadBytes = 36864;

using JournalBytes = std::vector<std::byte>;

// The end of an open file, where the next append goes.
struct JournalEnd {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;  // the number of the last record
  std::uint32_t seed = 0;     // seed of the checksums, so that a batch of another file has a wrong checksum here
  unsigned copy = 0;          // which copy (0 or 1) the next append writes
};

struct NewJournal {
  JournalBytes bytes;
  JournalEnd end;
};
// Makes a whole file whose snapshot holds `state`. `records` is the number of the last record that led to this state.
// Fails with kSoftware if a record is too long (kMaxRecordBytes).
Result<NewJournal> make_journal(const JournalState& state, std::uint64_t records);

// The bytes of an append. `batches` goes to `offset`, and `copy` to `copy_offset`.
struct JournalAppend {
  std::uint64_t offset = 0;
  JournalBytes batches;
  std::uint64_t copy_offset = 0;
  JournalBytes copy;
  // True: write `batches` and `copy` at the same time. False: the batches are too large for a copy, so they must be
  // durable before `copy` is written.
  bool is_copied = false;
  JournalEnd end;  // after the append
};
// `records` must not be empty. Fails with kSoftware if a record is too long.
Result<JournalAppend> make_append(const JournalEnd& end, std::span<const Record> records);

struct JournalReading {
  JournalState state;            // the state after all records before the first unreadable one
  std::uint64_t records = 0;     // the number of the last readable record
  std::uint64_t torn_bytes = 0;  // the length of an interrupted write at the end, which was never acknowledged
  bool is_mended = false;        // true: a batch was taken from its copy
  // If acknowledged records are lost, this text says what is wrong with the file. None: all acknowledged
  // records are there.
  std::optional<std::string> harm;
  // The number of lost acknowledged records. None: not known.
  std::optional<std::uint64_t> lost;
};
// Reads a whole file. Fails with kConfig or kData if another version of chiefd wrote it. `path` is for messages.
Result<JournalReading> read_journal(JournalBytes bytes, const std::string& path);

// The mark is a file beside the journal. It holds the journal's id and the newest term. If the journal is missing, but
// its mark is there, the chief knows that the journal was lost. If the journal's term is older than that of the mark,
// the chief knows that the journal is an old copy. The chief doesn't detect an old copy from the same term. To detect
// it, the chief would have to keep the number of records in the mark, and each append would cost a second sync.
struct JournalMark {
  JournalId journal;
  Term term;
  bool operator==(const JournalMark&) const = default;
};
JournalBytes encode_mark(const JournalMark& mark);
std::optional<JournalMark> decode_mark(std::span<const std::byte> bytes);

}  // namespace disttrain::chiefd
