// The journal's file as bytes: a head, two copies of its end, a snapshot, and batches of records behind it.
//
//   0      head: magic, version, checksum, number of records that the snapshot adds up, bytes of the snapshot
//   4096   copy 0 and copy 1, 16 KiB each: the newest batch and the one before it, as they stand below
//   36864  the snapshot: batches that add up to the state when the file was written
//          batches that were appended since
//
// Each batch has its length, its checksum and the number of its last record. Records are counted since the journal was
// first made. A batch and its copy are written at once and synced together, and its records are acknowledged only then.
// A reader that finds a bad batch decides:
//
//   1. Its copy is good: the batch is mended from the copy.
//   2. It is the newest and its copy is bad, too: the write was torn before it was acknowledged. The batch is cut.
//   3. It isn't the newest: the file is damaged.
//
// A batch that is too large for a copy is synced first; its copy then holds only its number.
//
// Pure. Reading trusts nothing.
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

// Of a file without records.
inline constexpr std::size_t kJournalHeadBytes = 36864;

using JournalBytes = std::vector<std::byte>;

// The end of an open file, where the next append goes.
struct JournalEnd {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;  // the number of the last record
  std::uint32_t seed = 0;     // of the checksums: batches of another file don't pass for this one's
  unsigned copy = 0;          // the copy that is written next
};

struct NewJournal {
  JournalBytes bytes;
  JournalEnd end;
};
// A whole file with a snapshot that adds up to `state`. kSoftware: a record can't be written (kMaxRecordBytes).
Result<NewJournal> make_journal(const JournalState& state, std::uint64_t records);

// The bytes of an append: the batches go to `offset`, then, or at the same time, the copy to its own place.
struct JournalAppend {
  std::uint64_t offset = 0;
  JournalBytes batches;
  std::uint64_t copy_offset = 0;
  JournalBytes copy;
  bool is_copied = false;  // else the batches must be durable before the copy is written
  JournalEnd end;          // after the append
};
// kSoftware: a record can't be written. `records` isn't empty.
Result<JournalAppend> make_append(const JournalEnd& end, std::span<const Record> records);

struct JournalReading {
  JournalState state;                 // from all records before the first unreadable one
  std::uint64_t records = 0;          // the number of the last readable one
  std::uint64_t torn_bytes = 0;       // of a torn write behind it, never acknowledged
  bool is_mended = false;             // a batch was taken from its copy
  std::optional<std::string> harm;    // acknowledged records are lost: what is wrong with the file
  std::optional<std::uint64_t> lost;  // how many of them; none: not known
};
// kConfig, kData: another version wrote it. `path` is for messages.
Result<JournalReading> read_journal(JournalBytes bytes, const std::string& path);

// The mark is a file beside the journal with the journal's id and the newest term. By the mark a chief detects that a
// journal is missing rather than new, and that it is an old copy from an earlier term. A copy from the same term isn't
// detected: a number of records in the mark would cost a second sync for each append.
struct JournalMark {
  JournalId journal;
  Term term;
  bool operator==(const JournalMark&) const = default;
};
JournalBytes encode_mark(const JournalMark& mark);
std::optional<JournalMark> decode_mark(std::span<const std::byte> bytes);

}  // namespace disttrain::chiefd
