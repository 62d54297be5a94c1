// Journal records as bytes and back: Cap'n Proto messages, as on the wire. records.capnp is the book of all records.
// Decoding trusts nothing: it returns a whole, checked record or an Error that says what was found. No I/O, no state,
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/result.h"

namespace disttrain::chiefd {

// The version of the file (format.h) and of its records. 6: records are Cap'n Proto messages.
inline constexpr std::uint32_t kJournalVersion = 6;

// kSoftware: the record exceeds a limit (limits.h, common/bounds.h), so it couldn't be read back.
Result<std::vector<std::byte>> encode_record(const Record& record);
// The bytes must have passed their checksum. kData: the bytes aren't a valid record. kConfig: only a newer version
// knows this kind of record.
Result<Record> decode_record(std::span<const std::byte> bytes);

}  // namespace disttrain::chiefd
