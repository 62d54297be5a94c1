// A block of records over a string, for the tests of the decoders.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "input/record_block.h"

namespace disttrain::input {

// The whole content of a file "x". `content` must outlive the block.
inline RecordBlock block_of(const std::string& content, bool is_last = true) {
  RecordBlock block;
  block.path = "x";
  block.first_record = 10;
  block.first_line = 1;
  block.is_last = is_last;
  block.bytes = std::as_bytes(std::span(content));
  return block;
}

inline std::vector<std::string> texts_of(const RecordBlock& block, const std::vector<RecordPlace>& places) {
  std::vector<std::string> texts;
  for (const RecordPlace& place : places) texts.emplace_back(text_at(block, place));
  return texts;
}

// The message of an error of the kind kData; "" if there is none.
template <typename T>
std::string error_of(const T& result) {
  if (result.has_value()) return "";
  EXPECT_EQ(result.error().code, ErrorCode::kData);
  return result.error().message;
}

}  // namespace disttrain::input
