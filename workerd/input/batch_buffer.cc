#include "workerd/input/batch_buffer.h"

#include "common/check.h"

namespace disttrain::input {

BatchBuffer::BatchBuffer(std::uint64_t most_examples, const std::vector<ColumnSpec>& columns)
    : most_examples_(most_examples), values_(columns.size()) {
  for (const ColumnSpec& spec : columns) {
    Column column{spec, element_count(spec) * size_of(spec.dtype), {}};
    void* const memory = ::operator new[](most_examples* column.record_bytes, std::align_val_t{kBatchAlignment});
    column.memory.reset(static_cast<std::byte*>(memory));
    columns_.push_back(std::move(column));
  }
}

void BatchBuffer::fill(const Dataset& dataset, std::span<const std::uint64_t> indices) {
  DISTTRAIN_CHECK_LE(indices.size(), most_examples_);
  examples_ = indices.size();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const std::span<std::byte> out(column.memory.get(), examples_ * column.record_bytes);
    if (examples_ > 0) dataset.gather(indices, i, column.spec, out);
    values_[i] = {out, {}};
  }
}

}  // namespace disttrain::input
