// Journal records as bytes, little-endian, and back. Formats never change in place: a new shape gets a new type number.
// Decoding trusts nothing.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/result.h"

namespace disttrain::chiefd {

inline constexpr std::uint32_t kJournalVersion = 5;

// kSoftware: the wire's codec can't write the model that it describes.
Result<std::vector<std::byte>> encode_record(const Record& record);
// kData: what was found, of a record whose checksum is right. An unknown type is one of a newer version.
Result<Record> decode_record(std::span<const std::byte> bytes);

}  // namespace disttrain::chiefd
