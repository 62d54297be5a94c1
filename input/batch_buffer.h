// The memory of one batch: an array for each column of the model. It is reused for later batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "common/batch.h"
#include "common/model.h"
#include "common/result.h"
#include "input/dataset.h"
#include "input/large_array.h"

namespace disttrain::input {

inline constexpr std::size_t kBatchAlignment = 64;  // a cache line, and the alignment of the widest vector instructions

class BatchBuffer {
 public:
  // `columns` are those of the model. The data set fits them (fits.h), and must outlive this object.
  BatchBuffer(const Dataset& dataset, std::uint64_t most_examples, const std::vector<ColumnSpec>& columns);

  // Fills the buffer with the records at `indices`, at most `most_examples` of them. After an error of
  // Dataset::gather() the buffer has no examples.
  Status fill(std::span<const std::uint64_t> indices, const Draw& draw = {});

  // Valid until the next call of fill().
  Batch batch() const { return {examples_, values_}; }
  std::uint64_t examples() const { return examples_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{kBatchAlignment}); }
  };
  struct Column {
    std::uint64_t record_bytes = 0;
    std::unique_ptr<std::byte[], Free> memory;
    LargeArray<std::byte> strings;        // instead of `memory`, if the type is kBytes
    std::vector<std::uint64_t> row_ends;  // tokens of a ragged column
  };

  const Dataset& dataset_;
  const std::uint64_t most_examples_;
  std::vector<Column> columns_;
  std::vector<ColumnOut> outs_;  // those of the last call of fill()
  std::vector<ColumnValues> values_;
  std::uint64_t examples_ = 0;
};

}  // namespace disttrain::input
