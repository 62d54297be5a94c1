// A data set of windows of tokens from text files. A token is a byte, or a number that a tokenizer has made.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "input/dataset.h"

namespace disttrain::input {

// The tokens of all files, and where their windows are.
struct Text {
  struct File {
    std::uint64_t first_record = 0;  // number of its first window in the data set
    std::uint64_t begin = 0;         // its first token
  };

  std::vector<std::byte> bytes;  // of all tokens
  DType dtype = DType::kUint8;   // of a token: kUint8 or kInt32
  std::int64_t largest = 0;      // kInt32: no token is larger
  std::vector<File> files;       // those with a window at least, in the order of the records
  std::uint64_t records = 0;
  std::uint64_t window = 0;
  std::uint64_t stride = 0;
  std::uint64_t bytes_read = 0;
};

class TextDataset final : public Dataset {
 public:
  // The data set has the records [begin, end) of `text`. Requires begin < end <= text.records. `scale` multiplies
  // values that become floats.
  TextDataset(Text text, std::uint64_t begin, std::uint64_t end, double scale);

  std::uint64_t records() const override { return records_; }
  const std::vector<DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return text_.bytes_read; }
  std::uint64_t hash() const override { return hash_; }
  const std::vector<std::string>& label_names() const override { return no_names_; }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return nullptr; }
  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw& draw) const override;

 private:
  std::uint64_t first_token(std::uint64_t record) const;

  const Text text_;
  const std::uint64_t begin_;
  const std::uint64_t records_;
  const double scale_;
  std::uint64_t hash_ = 0;
  const std::vector<std::string> no_names_;
  std::vector<DatasetColumn> columns_;
};

}  // namespace disttrain::input
