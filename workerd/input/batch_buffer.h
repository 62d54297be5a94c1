// The memory of one batch: rows of inputs, and their labels or targets. It is reused for later batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "workerd/input/dataset.h"

namespace disttrain::input {

inline constexpr std::size_t kBatchAlignment = 64;  // a cache line, and the alignment of the widest vector instructions

class BatchBuffer {
 public:
  // `target_width` is the number of target values per record (fits.h); with 0 the buffer holds labels instead.
  BatchBuffer(std::uint64_t most_examples, std::uint64_t input_elements, std::uint64_t target_width)
      : most_examples_(most_examples),
        input_elements_(input_elements),
        target_width_(target_width),
        inputs_(allocate(most_examples * input_elements)),
        targets_(allocate(most_examples * target_width)),
        labels_(target_width == 0 ? most_examples : 0) {}

  // Fills the buffer with the records at `indices`, at most `most_examples` of them.
  void fill(const Dataset& dataset, std::span<const std::uint64_t> indices);

  std::uint64_t examples() const { return examples_; }
  std::span<const float> inputs() const { return {inputs_.get(), examples_ * input_elements_}; }
  // One label for each example; empty if target_width > 0.
  std::span<const std::int64_t> labels() const { return {labels_.data(), target_width_ == 0 ? examples_ : 0}; }
  // target_width values for each example.
  std::span<const float> targets() const { return {targets_.get(), examples_ * target_width_}; }

 private:
  struct Free {
    void operator()(float* memory) const { ::operator delete[](memory, std::align_val_t{kBatchAlignment}); }
  };
  using Floats = std::unique_ptr<float[], Free>;

  static Floats allocate(std::uint64_t count) {
    return Floats(static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t{kBatchAlignment})));
  }

  const std::uint64_t most_examples_;
  const std::uint64_t input_elements_;
  const std::uint64_t target_width_;
  const Floats inputs_;
  const Floats targets_;
  std::vector<std::int64_t> labels_;
  std::uint64_t examples_ = 0;
};

}  // namespace disttrain::input
