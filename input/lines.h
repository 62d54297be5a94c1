// Finds the records of formats in which each line is a record: jsonl and libsvm.
#pragma once

#include <cstddef>
#include <vector>

#include "common/result.h"
#include "input/record_block.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxLineBytes = 64 * 1024 * 1024;

// Replaces `records` by the places of the block's whole lines. Lines end with LF or CRLF, which aren't part of the
// record; the last line of a file needs no end. Blank lines (is_blank_line()) aren't records. A byte order mark at the
// begin of the file is skipped. Returns how many bytes of the block the lines cover with their ends. Errors, kData: a
// line has more than kMaxLineBytes, or the file is UTF-16.
Result<std::size_t> find_lines(const RecordBlock& block, std::vector<RecordPlace>& records);

// Checks that the block, if it is the begin of a file, doesn't have the byte order mark of UTF-16.
Status check_begin(const RecordBlock& block);

// Bytes of the UTF-8 byte order mark at the begin of a file: 3, or 0 if the block has none or begins elsewhere.
std::size_t byte_order_mark(const RecordBlock& block);

// Whether the text has nothing but spaces, tabs and CR.
bool is_blank_line(std::string_view text);

}  // namespace disttrain::input
