#include "workerd/compute/sparse_rows.h"

#include <algorithm>

namespace disttrain::workerd {
namespace {

// Below, the products for few rows stream a weight once and are as fast.
constexpr std::int64_t kMinRows = 16;
// Bounds the memory of by_column_, which has room for each value: 32 MiB.
constexpr std::int64_t kMaxValues = 4 * 1024 * 1024;

std::int64_t count_nonzeros(std::span<const float> values) {
  std::int32_t count = 0;  // vectorises better than 64 bits; there are at most kMaxValues
  for (float value : values) count += value != 0.0F ? 1 : 0;
  return count;
}

}  // namespace

const SparseView* SparseRows::find(std::span<const float> values, const DenseShape& shape) {
  const std::int64_t elements = shape.rows * shape.inputs;
  if (machine_kernels() == nullptr || shape.rows < kMinRows || elements > kMaxValues) return nullptr;
  // A nonzero value costs about twice what it costs the dense product.
  if (count_nonzeros(values) * 2 > elements) return nullptr;
  view_.rows = shape.rows;
  view_.columns = shape.inputs;
  const auto groups = static_cast<std::size_t>((shape.inputs + kSparseGroup - 1) / kSparseGroup);
  by_row_.resize(static_cast<std::size_t>(elements));
  row_begins_.resize(groups * static_cast<std::size_t>(shape.rows) + 1);
  by_column_.resize(static_cast<std::size_t>(elements));
  column_sizes_.assign(static_cast<std::size_t>(shape.inputs), 0);
  collect(values);
  view_.by_row = by_row_.data();
  view_.row_begins = row_begins_.data();
  view_.by_column = by_column_.data();
  view_.column_sizes = column_sizes_.data();
  return &view_;
}

void SparseRows::collect(std::span<const float> values) {
  std::uint32_t found = 0;
  std::size_t run = 0;
  for (std::int64_t group = 0; group < view_.columns; group += kSparseGroup) {
    const std::int64_t end = std::min(view_.columns, group + kSparseGroup);
    for (std::int64_t row = 0; row < view_.rows; ++row) {
      row_begins_[run++] = found;
      const float* from = values.data() + row * view_.columns;
      for (std::int64_t column = group; column < end; ++column) {
        if (from[column] == 0.0F) continue;
        by_row_[found++] = {static_cast<std::uint32_t>(column), from[column]};
        std::uint32_t& size = column_sizes_[static_cast<std::size_t>(column)];
        by_column_[static_cast<std::size_t>(column * view_.rows + size++)] = {static_cast<std::uint32_t>(row),
                                                                              from[column]};
      }
    }
  }
  row_begins_[run] = found;
}

}  // namespace disttrain::workerd
