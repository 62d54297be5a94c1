#include "engine/sparse_rows.h"

namespace disttrain::workerd {
namespace {

// With fewer rows than this a sparse product is no faster than a dense one. A dense product of few rows reads the
// weight only once, but a sparse product first copies the whole weight into tiles.
constexpr std::int64_t kMinRows = 16;
// SparseView::begins counts the values in 32 bits.
constexpr std::int64_t kMaxValues = std::int64_t{1} << 31;
// Every sixteenth row is sampled first. If the sample is dense, the other rows aren't read.
constexpr std::int64_t kSampleStride = 16;

bool sample_is_sparse(std::span<const float> values, const DenseShape& shape) {
  std::int64_t seen = 0;
  std::int64_t nonzeros = 0;
  for (std::int64_t row = 0; row < shape.rows; row += kSampleStride) {
    const auto begin = static_cast<std::size_t>(row * shape.inputs);
    std::int32_t of_row = 0;  // of the size of a float, so that the compiler vectorises the loop
    for (float value : values.subspan(begin, static_cast<std::size_t>(shape.inputs))) of_row += value != 0.0F ? 1 : 0;
    nonzeros += of_row;
    seen += shape.inputs;
  }
  return nonzeros * 2 < seen;
}

}  // namespace

const SparseView* SparseRows::find(std::span<const float> values, const DenseShape& shape) {
  const Kernels* kernels = machine_kernels();
  const std::int64_t elements = shape.rows * shape.inputs;
  if (kernels == nullptr || shape.rows < kMinRows || elements > kMaxValues) return nullptr;
  if (!sample_is_sparse(values, shape)) return nullptr;
  // A sparse product takes about twice as long per nonzero value as a dense product takes per value.
  const std::int64_t most = elements / 2;
  const std::int64_t groups = (shape.inputs + kSparseGroup - 1) / kSparseGroup;
  positions_.resize(static_cast<std::size_t>(most + kCollectSlack));
  values_.resize(static_cast<std::size_t>(most + kCollectSlack));
  begins_.resize(static_cast<std::size_t>(groups * shape.rows + 1));
  const std::int64_t found = kernels->sparse_collect(shape.rows, shape.inputs, values.data(), most, positions_.data(),
                                                     values_.data(), begins_.data());
  if (found > most) return nullptr;
  view_ = {shape.rows, shape.inputs, positions_.data(), values_.data(), begins_.data(), values.data()};
  return &view_;
}

}  // namespace disttrain::workerd
