#include "input/batch_buffer.h"

#include "common/check.h"
#include "input/bind.h"

namespace disttrain::input {

BatchBuffer::BatchBuffer(const Dataset& dataset, std::uint64_t most_examples, const std::vector<ColumnSpec>& columns)
    : dataset_(dataset), most_examples_(most_examples), values_(columns.size()) {
  const Result<std::vector<Binding>> bindings = bind_columns(dataset.columns(), columns);
  DISTTRAIN_CHECK(bindings.has_value());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnSpec& spec = columns[i];
    const bool has_strings = spec.dtype == DType::kBytes;
    Column column{has_strings ? 0 : element_count(spec) * size_of(spec.dtype), {}, {}, {}};
    void* const memory = ::operator new[](most_examples* column.record_bytes, std::align_val_t{kBatchAlignment});
    column.memory.reset(static_cast<std::byte*>(memory));
    columns_.push_back(std::move(column));
    outs_.push_back({spec, {}, (*bindings)[i]});
    // All records of other arrays have the same length.
    if (!dataset.columns()[(*bindings)[i].array].are_tokens) outs_.back().as.ragged = false;
    if (outs_.back().as.ragged) columns_.back().row_ends.resize(most_examples);
  }
}

Status BatchBuffer::fill(std::span<const std::uint64_t> indices, const Draw& draw) {
  DISTTRAIN_CHECK_LE(indices.size(), most_examples_);
  examples_ = indices.size();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    outs_[i].out = {columns_[i].memory.get(), examples_ * columns_[i].record_bytes};
    if (outs_[i].as.dtype == DType::kBytes) outs_[i].strings = &columns_[i].strings;
    if (outs_[i].as.ragged) outs_[i].row_ends = std::span(columns_[i].row_ends).first(examples_);
    values_[i] = {outs_[i].out, outs_[i].row_ends};
  }
  if (examples_ == 0) return {};
  Status gathered = dataset_.gather(indices, outs_, draw);
  for (std::size_t i = 0; gathered && i < columns_.size(); ++i) {
    if (outs_[i].strings != nullptr)
      values_[i].bytes = *outs_[i].strings;
    else if (const auto& ends = outs_[i].row_ends; !ends.empty())
      values_[i].bytes = values_[i].bytes.first(ends.back() * size_of(outs_[i].as.dtype));
  }
  if (gathered) return {};
  examples_ = 0;
  for (ColumnValues& values : values_) values = {};
  return gathered;
}

}  // namespace disttrain::input
