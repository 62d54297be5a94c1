// Files of texts, and a tokenizer of six tokens, for the tests of columns of tokens and of texts.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/input/input_files.h"

namespace disttrain::input {

// The tokens are a = 1, b = 2, ab = 3, "<s>" = 4 and "</s>" = 5, the last two around a text. All others are 0.
inline constexpr const char* kTokenizer =
    R"({"model": {"type": "BPE", "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"], "unk_token": "?"},
        "added_tokens": [{"id": 4, "content": "<s>", "normalized": false}, {"id": 5, "content": "</s>", "normalized": false}],
        "post_processor": {"type": "BertProcessing", "cls": ["<s>", 4], "sep": ["</s>", 5]}})";

class TokenColumns : public testing::Test {
 protected:
  ColumnSection column(std::uint32_t length) const {
    ColumnSection section = column_section("text", ColumnKind::kTokens);
    section.tokenizer = folder_.write("tokenizer.json", kTokenizer);
    section.length = length;
    return section;
  }

  Source source_of(const std::string& files, DataFormat format, ColumnSection section) const {
    Source source;
    source.format = format;
    source.path = folder_.path();
    source.files = files;
    source.columns = {std::move(section)};
    source.memory = std::uint64_t{1} << 30;
    return source;
  }

  Result<std::unique_ptr<Dataset>> jsonl(const std::string& lines, ColumnSection section) const {
    folder_.write("x.jsonl", lines);
    return load_dataset(source_of("x.jsonl", DataFormat::kJsonl, std::move(section)));
  }

  std::string why_refused(const std::string& lines, ColumnSection section) const {
    const auto dataset = jsonl(lines, std::move(section));
    return dataset ? "accepted" : dataset.error().message;
  }

  static std::vector<std::int32_t> record(const Dataset& dataset, std::uint64_t index, std::size_t column = 0) {
    return gather<std::int32_t>(dataset, {index}, column, DType::kInt32, dataset.columns().at(column).elements);
  }

  Folder folder_;
};

}  // namespace disttrain::input
