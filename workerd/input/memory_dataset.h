// The implementation of Dataset: it holds all values in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "workerd/input/dataset.h"

namespace disttrain::input {

// All records of all files of a data set; data.records may select only some of them. The inputs are either in `bytes`
// or in `floats`.
struct Contents {
  std::uint64_t records = 0;
  std::uint64_t input_elements = 0;
  std::unique_ptr<std::byte[]> bytes;  // inputs of type uint8
  std::vector<float> floats;
  std::uint64_t target_elements = 0;
  std::vector<std::int64_t> labels;  // one per record, at least 0; empty if target_elements > 0
  std::vector<float> targets;        // records * target_elements
  std::vector<std::string> label_names;
  std::uint64_t bytes_read = 0;
};

class MemoryDataset final : public Dataset {
 public:
  // The data set has the records [begin, end) of `contents`. Requires begin < end <= contents.records.
  MemoryDataset(Contents contents, std::uint64_t begin, std::uint64_t end, double scale);

  std::uint64_t records() const override { return records_; }
  const std::vector<DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return contents_.bytes_read; }
  const std::vector<std::string>& label_names() const override { return contents_.label_names; }
  void gather(std::span<const std::uint64_t> indices, std::size_t column, const ColumnSpec& as,
              std::span<std::byte> out) const override;

 private:
  template <typename T>
  void gather_inputs(std::span<const std::uint64_t> indices, float scale, std::span<T> out) const;
  template <typename T>
  void gather_targets(std::span<const std::uint64_t> indices, std::span<T> out) const;

  const Contents contents_;
  const std::uint64_t begin_;
  const std::uint64_t records_;
  const float scale_;
  std::vector<DatasetColumn> columns_;
};

}  // namespace disttrain::input
