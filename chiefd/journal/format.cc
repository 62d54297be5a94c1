// A batch has one checksum, and not one for each record. After a crash any page of a write may be missing from the
// disk. With a checksum for each record, a missing page in the middle, with good records behind it, looked like damage,
// and the chief refused to start.
//
// Each batch is on the disk twice, as databases do with pages, for the case that the end of the file can't be read.
// Then either a crash has interrupted a write, which does no harm, or bits have flipped in records that were
// acknowledged. The copy tells these cases apart. A second file with the synced length would do so too, but it would
// cost a second sync of 4 ms for each grant.
#include "chiefd/journal/format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "chiefd/journal/codec.h"
#include "chiefd/journal/limits.h"
#include "transport/wire/checksum.h"

namespace disttrain::chiefd {
namespace {

using Span = std::span<const std::byte>;

constexpr std::array<char, 8> kMagic = {'D', 'T', 'R', 'N', 'J', 'R', 'N', 'L'};
constexpr std::array<char, 8> kMarkMagic = {'D', 'T', 'R', 'N', 'M', 'A', 'R', 'K'};
// Files of every version begin with magic bytes and the version number, which end at this offset.
constexpr std::size_t kVersionEnd = 12;
// A head is: magic, u32 version, u32 crc32c, u64 number of the snapshot's last record, u64 length of the snapshot.
constexpr std::size_t kHeadBytes = 32;
// A batch begins with: u32 length, u32 crc32c, u64 number of the last record.
constexpr std::size_t kBatchHeadBytes = 16;
// A copy begins with: u32 length, u32 crc32c, u64 number of the last record, u64 offset of the batch.
constexpr std::size_t kCopyHeadBytes = 24;
// A mark is: magic, u32 version, u32 crc32c, u64 id of the journal, u64 term.
constexpr std::size_t kMarkBytes = 32;
// The first copy isn't in the head's sector, so that an interrupted write of a copy can't damage the head.
constexpr std::size_t kFirstCopy = 4096;
constexpr std::size_t kCopyRoom = kCopyHeadBytes + kMaxCopiedBytes;
constexpr std::size_t kSnapshot = kFirstCopy + 2 * kCopyRoom;
static_assert(kSnapshot == kJournalHeadBytes);
// The offset of the record number in a batch or copy. The checksum covers the length, and all bytes from this offset
// on.
constexpr std::size_t kNumberAt = 8;

template <typename Integer>
void put(JournalBytes& out, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    out.push_back(static_cast<std::byte>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff));
}

template <typename Integer>
Integer get(Span bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    value |= static_cast<std::uint64_t>(std::to_integer<std::uint8_t>(bytes[at + i])) << (8 * i);
  return static_cast<Integer>(value);
}

template <typename Integer>
void set(JournalBytes& bytes, std::size_t at, Integer value) {
  JournalBytes one;
  put(one, value);
  std::copy(one.begin(), one.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

void put_magic(JournalBytes& out, const std::array<char, 8>& magic) {
  for (char c : magic) out.push_back(static_cast<std::byte>(c));
}

bool has_magic(Span bytes, const std::array<char, 8>& magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

std::size_t copy_offset(unsigned copy) {
  return kFirstCopy + copy * kCopyRoom;
}

// The checksum of a head or mark. It covers all bytes except its own 4 bytes, which come after the version.
std::uint32_t sum_of_head(Span head) {
  return wire::crc32c(head.subspan(16), wire::crc32c(head.first(12)));
}

// The checksum of a batch or copy. It covers all bytes except its own 4 bytes, which come after the length.
std::uint32_t sum_of(Span whole, std::uint32_t seed) {
  return wire::crc32c(whole.subspan(kNumberAt), wire::crc32c(whole.first(4), seed));
}

// ---- writing

struct Batches {
  JournalBytes bytes;
  std::size_t last = 0;  // where the last batch begins
  std::size_t count = 0;
};

void seal(Batches& batches, std::uint64_t number, std::uint32_t seed) {
  const std::size_t length = batches.bytes.size() - batches.last - kBatchHeadBytes;
  set(batches.bytes, batches.last, static_cast<std::uint32_t>(length));
  set(batches.bytes, batches.last + kNumberAt, number);
  set(batches.bytes, batches.last + 4, sum_of(Span(batches.bytes).subspan(batches.last), seed));
}

// Packs records into batches. With `counts`, the first record gets the number after `number`, and so on. Without it, as
// in a snapshot, every record gets the number `number`.
Result<Batches> make_batches(std::span<const Record> records, std::uint64_t number, bool counts, std::uint32_t seed) {
  Batches batches;
  for (const Record& record : records) {
    const Result<JournalBytes> bytes = encode_record(record);
    if (!bytes) return tl::unexpected(bytes.error());
    if (bytes->size() > kMaxRecordBytes)
      return fail(ErrorCode::kSoftware, "a record of the journal has " + std::to_string(bytes->size()) +
                                            " bytes, but a chief can read only records of at most " +
                                            std::to_string(kMaxRecordBytes) + " bytes");
    const std::size_t held = batches.count == 0 ? 0 : batches.bytes.size() - batches.last - kBatchHeadBytes;
    if (batches.count == 0 || (held > 0 && held + 4 + bytes->size() > kBatchBytes)) {
      if (batches.count > 0) seal(batches, number, seed);
      ++batches.count;
      batches.last = batches.bytes.size();
      batches.bytes.resize(batches.last + kBatchHeadBytes);
    }
    number += counts ? 1 : 0;
    put(batches.bytes, static_cast<std::uint32_t>(bytes->size()));
    batches.bytes.insert(batches.bytes.end(), bytes->begin(), bytes->end());
  }
  if (batches.count > 0) seal(batches, number, seed);
  return batches;
}

}  // namespace

Result<NewJournal> make_journal(const JournalState& state, std::uint64_t records) {
  const std::vector<Record> snapshot = compacted(state);
  JournalBytes head;
  put_magic(head, kMagic);
  put(head, kJournalVersion);
  put(head, std::uint32_t{0});
  put(head, records);
  // The seed is a checksum of the head so far. The head's final checksum can't be the seed, because it also covers the
  // snapshot's length. That length is known only after the snapshot was made with the seed.
  const std::uint32_t seed = wire::crc32c(head);
  Result<Batches> batches = make_batches(snapshot, records, false, seed);
  if (!batches) return tl::unexpected(batches.error());
  put(head, static_cast<std::uint64_t>(batches->bytes.size()));
  set(head, 12, sum_of_head(head));
  head.resize(kSnapshot);
  head.insert(head.end(), batches->bytes.begin(), batches->bytes.end());
  const std::uint64_t size = head.size();
  return NewJournal{std::move(head), JournalEnd{size, records, seed, 0}};
}

Result<JournalAppend> make_append(const JournalEnd& end, std::span<const Record> records) {
  Result<Batches> batches = make_batches(records, end.records, true, end.seed);
  if (!batches) return tl::unexpected(batches.error());
  const std::size_t size = batches->bytes.size();
  JournalAppend append;
  append.offset = end.bytes;
  append.batches = std::move(batches->bytes);
  append.end = JournalEnd{end.bytes + size, end.records + records.size(), end.seed, 1 - end.copy};
  append.copy_offset = copy_offset(end.copy);
  append.is_copied = batches->count == 1 && size <= kMaxCopiedBytes;
  const Span copied = append.is_copied ? Span(append.batches) : Span();
  put(append.copy, static_cast<std::uint32_t>(copied.size()));
  put(append.copy, std::uint32_t{0});
  put(append.copy, append.end.records);
  put(append.copy, end.bytes + batches->last);
  append.copy.insert(append.copy.end(), copied.begin(), copied.end());
  set(append.copy, 4, sum_of(append.copy, end.seed));
  return append;
}

// ---- reading

namespace {

// The batch at the begin of `bytes`. None: the batch is incomplete or has a wrong checksum.
std::optional<Span> first_batch(Span bytes, std::uint32_t seed) {
  if (bytes.size() < kBatchHeadBytes) return std::nullopt;
  const auto length = get<std::uint32_t>(bytes, 0);
  if (length == 0 || length > kMaxBatchBytes || bytes.size() - kBatchHeadBytes < length) return std::nullopt;
  const Span batch = bytes.first(kBatchHeadBytes + length);
  if (get<std::uint32_t>(batch, 4) != sum_of(batch, seed)) return std::nullopt;
  return batch;
}

Status apply_record(JournalState& state, Span bytes, const std::string& path) {
  const Result<Record> record = decode_record(bytes);
  if (!record)
    return fail(record.error().code, path + ": " + record.error().message +
                                         "; if a newer chiefd wrote this journal, install that version again");
  chiefd::apply(state, *record);
  return {};
}

// Splits the content of a batch into records. The content has passed its checksum. If it still makes no sense, a newer
// version of chiefd wrote it.
Result<std::vector<Span>> records_of(Span content, const std::string& path) {
  std::vector<Span> records;
  while (!content.empty()) {
    const std::size_t length = content.size() < 4 ? SIZE_MAX : get<std::uint32_t>(content, 0);
    if (length > content.size() || content.size() - 4 < length)
      return fail(ErrorCode::kData, path +
                                        ": a record is longer than the batch that holds it; if a newer chiefd wrote "
                                        "this journal, install that version again");
    records.push_back(content.subspan(4, length));
    content = content.subspan(4 + length);
  }
  return records;
}

Status apply_records(JournalState& state, const std::vector<Span>& records, const std::string& path) {
  for (const Span record : records)
    if (Status applied = apply_record(state, record, path); !applied) return applied;
  return {};
}

struct Copy {
  std::uint64_t number = 0;
  std::uint64_t offset = 0;
  JournalBytes batch;  // empty: it was too large
};

std::optional<Copy> read_copy(Span bytes, unsigned which, std::uint32_t seed) {
  const Span room = bytes.subspan(copy_offset(which), kCopyRoom);
  const auto length = get<std::uint32_t>(room, 0);
  if (length > kMaxCopiedBytes) return std::nullopt;
  const Span whole = room.first(kCopyHeadBytes + length);
  Copy copy{get<std::uint64_t>(room, kNumberAt), get<std::uint64_t>(room, 16), {}};
  if (copy.number == 0 || get<std::uint32_t>(room, 4) != sum_of(whole, seed)) return std::nullopt;
  copy.batch.assign(whole.begin() + kCopyHeadBytes, whole.end());
  return copy;
}

// Replaces each bad batch that has a good copy by that copy. Returns the number of the newest record that a copy
// mentions.
std::uint64_t mend(JournalBytes& bytes, std::uint64_t least, std::uint32_t seed, bool& is_mended) {
  std::array<std::optional<Copy>, 2> copies = {read_copy(bytes, 0, seed), read_copy(bytes, 1, seed)};
  if (copies[0] && copies[1] && copies[0]->number > copies[1]->number) std::swap(copies[0], copies[1]);
  std::uint64_t newest = 0;
  for (const std::optional<Copy>& copy : copies) {
    if (!copy) continue;
    newest = std::max(newest, copy->number);
    const bool has_place = copy->offset >= least && copy->offset <= bytes.size();
    if (copy->batch.empty() || !has_place || first_batch(Span(bytes).subspan(copy->offset), seed)) continue;
    bytes.resize(std::max<std::size_t>(bytes.size(), copy->offset + copy->batch.size()));
    std::copy(copy->batch.begin(), copy->batch.end(), bytes.begin() + static_cast<std::ptrdiff_t>(copy->offset));
    is_mended = true;
  }
  return newest;
}

std::string at_byte(std::uint64_t offset) {
  return "at byte " + std::to_string(offset);
}

Result<JournalReading> read_batches(JournalBytes bytes, const std::string& path) {
  JournalReading reading;
  const auto harmed = [&reading](const std::string& what) {
    reading.harm = what;
    return std::move(reading);
  };
  if (bytes.size() < kSnapshot) return harmed("the file ends " + at_byte(bytes.size()) + ", before its first record");
  const Span head = Span(bytes).first(kHeadBytes);
  if (get<std::uint32_t>(head, 12) != sum_of_head(head)) return harmed("its head has a wrong checksum");
  const auto records = get<std::uint64_t>(head, 16);
  const auto snapshot = get<std::uint64_t>(head, 24);
  JournalBytes seeded(head.begin(), head.begin() + 24);
  set(seeded, 12, std::uint32_t{0});
  const std::uint32_t seed = wire::crc32c(seeded);
  const std::uint64_t promised = std::max(records, mend(bytes, kSnapshot + snapshot, seed, reading.is_mended));
  const std::size_t appended = kSnapshot + snapshot;
  std::size_t at = kSnapshot;
  while (const std::optional<Span> batch = first_batch(Span(bytes).subspan(at), seed)) {
    if (at == appended) reading.records = records;
    const Result<std::vector<Span>> content = records_of(batch->subspan(kBatchHeadBytes), path);
    if (!content) return tl::unexpected(content.error());
    const std::uint64_t expected = at < appended ? records : reading.records + content->size();
    if (get<std::uint64_t>(*batch, kNumberAt) != expected) break;
    if (Status applied = apply_records(reading.state, *content, path); !applied) return tl::unexpected(applied.error());
    if (at >= appended) reading.records = expected;
    at += batch->size();
  }
  if (at < appended) return harmed("the record " + at_byte(at) + " has a wrong checksum");
  reading.records = std::max(reading.records, records);
  if (reading.records < promised) {
    reading.lost = promised - reading.records;
    return harmed("the record " + at_byte(at) + " has a wrong checksum, and " + std::to_string(*reading.lost) +
                  " acknowledged records from there on are lost");
  }
  reading.torn_bytes = bytes.size() - at;
  return reading;
}

// Returns true if the head's checksum would be right with the version number of this chiefd. If so, this version has
// written the file, and the version number in the file is damaged. So no other version of chiefd can read the file.
bool is_right_with_this_version(Span bytes) {
  if (bytes.size() < kHeadBytes) return false;
  JournalBytes head(bytes.begin(), bytes.begin() + kHeadBytes);
  set(head, kMagic.size(), kJournalVersion);
  return get<std::uint32_t>(head, 12) == sum_of_head(head);
}

// The error for a file whose version isn't kJournalVersion.
Error other_version(std::uint32_t version, const std::string& path) {
  const bool is_newer = version > kJournalVersion;
  std::string message = path + " was written by " + (is_newer ? "a newer" : "an older") +
                        " chiefd (the file has journal version " + std::to_string(version) +
                        ", but this chiefd reads version " + std::to_string(kJournalVersion) +
                        "): install that version again";
  if (!is_newer) message += ", or move this file and " + path + ".mark away to begin without its jobs";
  return Error{ErrorCode::kConfig, std::move(message)};
}

}  // namespace

Result<JournalReading> read_journal(JournalBytes bytes, const std::string& path) {
  const auto harmed = [](const std::string& what) {
    JournalReading reading;
    reading.harm = what;
    return reading;
  };
  if (bytes.size() < kVersionEnd) return harmed("it has " + std::to_string(bytes.size()) + " bytes");
  if (!has_magic(bytes, kMagic)) return harmed("it doesn't begin with the magic bytes of a journal");
  const auto version = get<std::uint32_t>(bytes, kMagic.size());
  if (version == kJournalVersion) return read_batches(std::move(bytes), path);
  if (is_right_with_this_version(bytes))
    return harmed("its head says version " + std::to_string(version) +
                  ", but the head's checksum is right only for version " + std::to_string(kJournalVersion));
  return tl::unexpected(other_version(version, path));
}

// ---- the mark

JournalBytes encode_mark(const JournalMark& mark) {
  JournalBytes bytes;
  put_magic(bytes, kMarkMagic);
  put(bytes, kJournalVersion);
  put(bytes, std::uint32_t{0});
  put(bytes, mark.journal.value);
  put(bytes, mark.term.value);
  set(bytes, 12, sum_of_head(bytes));
  return bytes;
}

std::optional<JournalMark> decode_mark(Span bytes) {
  if (bytes.size() != kMarkBytes || !has_magic(bytes, kMarkMagic)) return std::nullopt;
  if (get<std::uint32_t>(bytes, 12) != sum_of_head(bytes)) return std::nullopt;
  return JournalMark{JournalId(get<std::uint64_t>(bytes, 16)), Term(get<std::uint64_t>(bytes, 24))};
}

}  // namespace disttrain::chiefd
