// Helpers of all fuzz targets. libFuzzer calls the function LLVMFuzzerTestOneInput of a target with millions of inputs,
// which it changes so that they reach new code. The input is on the heap and has no bytes behind it, so that
// AddressSanitizer finds a read past its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/check.h"
#include "input/byte_source.h"
#include "input/record_block.h"
#include "input/table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace disttrain::input {

// Some targets have several cases, such as sets of columns to read. An input takes one of them, which its own bytes
// choose, because an input that takes all of them takes as many times longer. The tests set this to true
// (replay.cc): there, each input takes all cases.
inline bool takes_all_cases = false;

// Calls take(i) for each case i that the input takes, of `count` cases.
template <typename Take>
void for_each_case(std::size_t choice, std::size_t count, const Take& take) {
  if (!takes_all_cases) return take(choice % count);
  for (std::size_t i = 0; i < count; ++i) take(i);
}

inline RecordBlock block_of(std::span<const std::byte> bytes, bool is_last) {
  RecordBlock block;
  block.path = "fuzz";
  block.first_line = 1;
  block.is_last = is_last;
  block.bytes = bytes;
  return block;
}

// The places are within the covered bytes, one after the other.
inline void check_places(const RecordBlock& block, const std::vector<RecordPlace>& places, std::size_t covered) {
  DISTTRAIN_CHECK(covered <= block.bytes.size());
  std::size_t end = 0;
  for (const RecordPlace& place : places) {
    DISTTRAIN_CHECK(place.begin >= end);
    end = place.begin + place.bytes;
    DISTTRAIN_CHECK(end <= covered);
  }
}

// Each column has the values that its lengths promise. Reads all of them, so that a sanitizer sees those that aren't
// there.
inline void check_table(const Table& table) {
  for (const TableColumn& column : table.columns) {
    std::uint64_t values = table.records;
    if (!column.lengths.empty()) {
      DISTTRAIN_CHECK_EQ(column.lengths.size(), table.records);
      values = 0;
      for (const std::uint32_t length : column.lengths) values += length;
    }
    DISTTRAIN_CHECK_EQ(values_in(column), values);
    std::size_t sum = 0;
    for (const std::string_view bytes : column.bytes)
      for (const char c : bytes) sum += static_cast<unsigned char>(c);
    [[maybe_unused]] volatile const std::size_t seen = sum;
  }
}

// A source over the input.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes), size_(bytes.size()) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    const std::size_t count = std::min(out.size(), bytes_.size());
    if (count > 0) std::memcpy(out.data(), bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return count;
  }
  const std::string& path() const override { return path_; }
  std::uint64_t file_bytes() const override { return size_; }
  std::uint64_t most_content_bytes() const override { return size_; }

 private:
  const std::string path_ = "fuzz";
  std::span<const std::byte> bytes_;
  const std::uint64_t size_;
};

inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

}  // namespace disttrain::input
