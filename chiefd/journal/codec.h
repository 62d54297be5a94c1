// Encodes and decodes the records of the journal. The bytes of a record are a Cap'n Proto message; records.capnp is the
// schema. Decoding accepts any bytes. It returns a complete record whose values are checked, or an Error that says what
// is wrong. The functions have no state and do no I/O, so any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/result.h"

namespace disttrain::chiefd {

// The version of the file's format (format.h) and of the records in it. Since version 6 the records are Cap'n Proto
// messages.
inline constexpr std::uint32_t kJournalVersion = 7;

// Fails with kSoftware if the record exceeds a limit (limits.h, common/bounds.h), because decode_record() would refuse
// it.
Result<std::vector<std::byte>> encode_record(const Record& record);
// The bytes must have passed their checksum. Fails with kData if they aren't a valid record, and with kConfig if only a
// newer version knows this kind of record.
Result<Record> decode_record(std::span<const std::byte> bytes);

}  // namespace disttrain::chiefd
