// Decodes the lines of jsonl files, each of which is a JSON object. simdjson reads the JSON.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/result.h"
#include "input/record_block.h"
#include "input/table.h"

namespace disttrain::input {

// At most one thread at a time may use a decoder, which keeps the memory that one line needs. The name of a wanted
// column may be "a.b": the member "b" of the object "a".
//
// Numbers and booleans (as 0 and 1) become floats or integers; an integer column refuses 1.5 and 1.0. NaN and infinity,
// as Python writes them, are numbers too. Strings become bytes, and floats if they have the text of a number
// (number_of_text()). Numbers and booleans become bytes as number_word() says; integers of any length stay as they are
// written. An array gives its elements, and an array of arrays all elements in their order. A record in which a column
// is null or isn't there has no values there; null in an array becomes NaN in a column of floats. If a name is there
// twice, the last one counts.
class JsonlDecoder {
 public:
  explicit JsonlDecoder(const std::vector<WantedColumn>& wanted);
  ~JsonlDecoder();
  JsonlDecoder(const JsonlDecoder&) = delete;
  JsonlDecoder& operator=(const JsonlDecoder&) = delete;

  // Decodes lines of the block and replaces the content of `table`. `records` are from find_lines(block). Errors,
  // kData, with file, line and column: a line isn't a JSON object, or a value has another type than wanted. Parts of
  // the line that no column wants aren't checked in full. `table` is then unusable.
  Status decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table);

 private:
  class Reader;

  const std::unique_ptr<Reader> reader_;
};

}  // namespace disttrain::input
