// The journal's file as bytes: a head, two copies of its end, a snapshot, and batches of records behind it.
//
//   0      head: magic, version, checksum, number of records that the snapshot adds up, bytes of the snapshot
//   4096   copy 0 and copy 1, 16 KiB each: the newest batch and the one before it, as they stand below
//   36864  the snapshot: batches that add up to the state when the file was written
//          batches that were appended since
//
// Each batch has its length, its checksum and the number of its last record: records are counted since the journal was
// first made. A batch and its copy are written at once and synced together, and nobody hears of their records before.
// So a batch that is bad below and good in its copy is mended. If both are bad, the write was torn, and nobody heard of
// it. If a batch before the newest is bad, the file is damaged. A batch that is too large for a copy is synced first;
// then the copy says its number alone.
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

// Where an open file ends.
struct JournalEnd {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;  // the number of the last
  std::uint32_t seed = 0;     // of the checksums: batches of another file don't pass for this one's
  unsigned copy = 0;          // the one to be written next
};

struct NewJournal {
  JournalBytes bytes;
  JournalEnd end;
};
// A whole file with a snapshot that adds up to `state`. kSoftware: a record can't be written (kMaxRecordBytes).
Result<NewJournal> make_journal(const JournalState& state, std::uint64_t records);

// What an append writes: the batches at `offset`, then, or at the same time, the copy at its own place.
struct JournalAppend {
  std::uint64_t offset = 0;
  JournalBytes batches;
  std::uint64_t copy_offset = 0;
  JournalBytes copy;
  bool is_copied = false;  // else the batches must be durable before the copy is written
  JournalEnd end;          // afterwards
};
// kSoftware: a record can't be written. `records` isn't empty.
Result<JournalAppend> make_append(const JournalEnd& end, std::span<const Record> records);

struct JournalReading {
  JournalState state;                 // of all records before the first that can't be read
  std::uint64_t records = 0;          // the number of the last of those
  std::uint64_t torn_bytes = 0;       // behind it, of a write that nobody heard of
  bool is_mended = false;             // a batch was taken from its copy
  std::optional<std::string> harm;    // acknowledged records are lost: what is wrong with the file, without its name
  std::optional<std::uint64_t> lost;  // how many; none: nobody knows
};
// kConfig, kData: another version wrote it. `path` is for messages.
Result<JournalReading> read_journal(JournalBytes bytes, const std::string& path);

// Beside the journal lies its mark: whose journal it is, and the newest term. It tells a journal that is missing from
// one that never was, and a copy of it from an earlier term from the journal itself. A copy from the same term is not
// told: a number of records in the mark would cost each append a second sync.
struct JournalMark {
  JournalId journal;
  Term term;
  bool operator==(const JournalMark&) const = default;
};
JournalBytes encode_mark(const JournalMark& mark);
std::optional<JournalMark> decode_mark(std::span<const std::byte> bytes);

}  // namespace disttrain::chiefd
