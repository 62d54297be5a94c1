// The data set in memory, and batches of its rows.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "workerd/input/dataset.h"

namespace disttrain::input {

// All records of all files, before data.records selects some. Either `bytes` or `floats` holds the inputs.
struct Contents {
  std::uint64_t records = 0;
  std::uint64_t input_elements = 0;
  std::unique_ptr<std::byte[]> bytes;  // uint8 values
  std::vector<float> floats;
  std::uint64_t target_elements = 0;
  std::vector<std::int64_t> labels;  // of each record, >= 0, unless target_elements > 0
  std::vector<float> targets;        // records * target_elements
  std::vector<std::string> label_names;
  std::uint64_t bytes_read = 0;
};

class MemoryDataset final : public Dataset {
 public:
  // The records [begin, end) of `contents`, begin < end <= contents.records.
  MemoryDataset(Contents contents, std::uint64_t begin, std::uint64_t end, double scale);

  std::uint64_t records() const override { return records_; }
  std::uint64_t input_elements() const override { return contents_.input_elements; }
  std::uint64_t target_elements() const override { return contents_.target_elements; }
  std::int64_t largest_label() const override { return largest_label_; }
  std::uint64_t bytes_read() const override { return contents_.bytes_read; }
  const std::vector<std::string>& label_names() const override { return contents_.label_names; }
  void gather(std::span<const std::uint64_t> indices, std::span<float> inputs, std::span<std::int64_t> labels,
              std::span<float> targets) const override;

 private:
  void gather_inputs(std::span<const std::uint64_t> indices, float* out) const;
  void gather_targets(std::span<const std::uint64_t> indices, std::span<float> out) const;

  const Contents contents_;
  const std::uint64_t begin_;
  const std::uint64_t records_;
  const float scale_;
  std::int64_t largest_label_ = -1;
};

}  // namespace disttrain::input
