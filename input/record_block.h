// A piece of a data file with whole records in it, and the places of the records. Each format with records has two
// functions: one finds the places of the records in a block without decoding them, and one decodes some of these
// records into a table. So the records of a file can be counted, read by position, and decoded by any thread.
//
// All functions that take a block are reentrant: any thread may call them. They trust none of the block's bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/printable.h"

namespace disttrain::input {

// Some bytes of a file that begin with a record. `path` is for error texts. If the file is compressed, the bytes are
// those after decompression.
struct RecordBlock {
  std::string_view path;
  std::uint64_t offset = 0;        // of the first byte in the file's content
  std::uint64_t first_record = 0;  // number of the first record in the file, from 0
  // The line of the file on which the block begins, from 1. Only errors of formats with lines use it. 0: unknown; then
  // these errors name only the record.
  std::uint64_t first_line = 0;
  bool is_last = false;  // the file has no bytes after these
  std::span<const std::byte> bytes;
};

// The data of a record, without the length, the checksums or the end of line around it. `begin` counts from the start
// of the block.
struct RecordPlace {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

// Begins the text of an error about a record of the block: `data file "x", record 7`.
inline std::string name_of(const RecordBlock& block, std::uint64_t record) {
  return "data file \"" + std::string(block.path) + "\", record " + std::to_string(block.first_record + record);
}

// The line on which the byte `begin` of the block lies. block.first_line must be known.
inline std::uint64_t line_at(const RecordBlock& block, std::size_t begin) {
  const auto before = block.bytes.first(begin);
  return block.first_line + static_cast<std::uint64_t>(std::count(before.begin(), before.end(), std::byte{'\n'}));
}

// The same for formats with lines, where the record begins at byte `begin` of the block: `x:9`, or as name_of() if
// the line isn't known.
inline std::string place_of(const RecordBlock& block, std::uint64_t record, std::size_t begin) {
  if (block.first_line == 0) return name_of(block, record);
  return std::string(block.path) + ":" + std::to_string(line_at(block, begin));
}

// The data of a record of the block.
inline std::string_view text_at(const RecordBlock& block, const RecordPlace& place) {
  return {reinterpret_cast<const char*>(block.bytes.data()) + place.begin, place.bytes};
}

// A piece of a file's text for an error: in quotes, and cut where it is long.
inline std::string shown_text(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return "'" + std::string(cut_text(text, kMost)) + (text.size() > kMost ? "...'" : "'");
}

}  // namespace disttrain::input
