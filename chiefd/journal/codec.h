// Journal records as bytes and back: Cap'n Proto messages, as on the wire. records.capnp is the book of all records.
// Decoding trusts nothing: the answer is a whole, checked record or an Error that says what was found. No I/O, no
// state, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/result.h"

namespace disttrain::chiefd {

// Of the file (format.h) and of its records. 6: records are Cap'n Proto messages.
inline constexpr std::uint32_t kJournalVersion = 6;

// kSoftware: the record exceeds a limit (limits.h, common/bounds.h), so it couldn't be read back.
Result<std::vector<std::byte>> encode_record(const Record& record);
// Of bytes whose checksum is right. kData: what was found. kConfig: a newer version knows this kind of record.
Result<Record> decode_record(std::span<const std::byte> bytes);

}  // namespace disttrain::chiefd
