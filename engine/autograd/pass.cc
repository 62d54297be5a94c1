#include "engine/autograd/pass.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "common/check.h"
#include "engine/dropout.h"

namespace disttrain::workerd::autograd {
namespace {

constexpr double kBatchNormMomentum = 0.1;  // the share of the batch in the new statistics
constexpr double kBatchNormEpsilon = 1e-5;

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kBfloat16:
      return at::kBFloat16;
    case DType::kInt32:
      return at::kInt;
    case DType::kInt64:
      return at::kLong;
    case DType::kUint8:
    case DType::kBytes:
      break;
  }
  return at::kByte;
}

template <typename T>
void check_limit(const ColumnSpec& column, std::span<const T> values) {
  for (const T value : values)
    if (value < T(0) || static_cast<std::uint64_t>(value) >= column.limit)
      throw BadRecord("a record has " + std::to_string(value) + " in the column \"" + column.name +
                      "\"; the model takes 0 to " + std::to_string(column.limit - 1));
}

void check_limit(const ColumnSpec& column, const ColumnValues& values) {
  if (column.limit == 0) return;
  if (column.dtype == DType::kUint8) return check_limit(column, values.as<std::uint8_t>());
  if (column.dtype == DType::kInt32) return check_limit(column, values.as<std::int32_t>());
  if (column.dtype == DType::kInt64) return check_limit(column, values.as<std::int64_t>());
}

// The rows of a ragged column, padded with zeros.
at::Tensor padded(const ColumnValues& values, std::uint64_t examples, const ColumnSpec& column, PadTo pad_to) {
  if (values.row_ends.size() != examples || column.shape.size() != 1 ||
      values.bytes.size() != (examples == 0 ? 0 : values.row_ends.back()) * size_of(column.dtype))
    throw BadRecord("a batch has " + std::to_string(values.bytes.size()) + " bytes in the column \"" + column.name +
                    "\", but its records have other lengths");
  std::uint64_t longest = std::min<std::uint64_t>(column.shape[0], 2);  // a token, and the one that follows
  std::uint64_t begin = 0;
  for (const std::uint64_t end : values.row_ends) {
    if (end < begin || end - begin > column.shape[0])
      throw BadRecord("a record has more than " + std::to_string(column.shape[0]) + " values in the column \"" +
                      column.name + "\"");
    longest = std::max(longest, end - begin);
    begin = end;
  }
  if (pad_to == PadTo::kLargest) longest = column.shape[0];
  const std::size_t bytes = size_of(column.dtype);
  const at::Tensor tensor =
      at::zeros({static_cast<std::int64_t>(examples), static_cast<std::int64_t>(longest)}, scalar_type(column.dtype));
  auto* row = static_cast<std::byte*>(tensor.mutable_data_ptr());
  begin = 0;
  for (const std::uint64_t end : values.row_ends) {
    std::memcpy(row, values.bytes.data() + begin * bytes, (end - begin) * bytes);
    begin = end;
    row += longest * bytes;
  }
  return tensor;
}

}  // namespace

std::vector<at::Tensor> tensors_of(const Batch& batch, const std::vector<ColumnSpec>& columns, PadTo pad_to,
                                   bool may_lack_last) {
  DISTTRAIN_CHECK_EQ(batch.columns.size(), columns.size());
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnSpec& column = columns[i];
    const std::span<const std::byte> bytes = batch.columns[i].bytes;
    if (bytes.empty() && may_lack_last && i + 1 == columns.size()) {
      tensors.emplace_back();
      break;
    }
    if (column.ragged && !batch.columns[i].row_ends.empty()) {
      check_limit(column, batch.columns[i]);
      tensors.push_back(padded(batch.columns[i], batch.examples, column, pad_to));
      continue;
    }
    const std::uint64_t expected = batch.examples * element_count(column) * size_of(column.dtype);
    if (bytes.size() != expected)
      throw BadRecord("a batch has " + std::to_string(bytes.size()) + " bytes in the column \"" + column.name +
                      "\"; the model expects " + std::to_string(expected));
    check_limit(column, batch.columns[i]);
    std::vector<std::int64_t> shape = {static_cast<std::int64_t>(batch.examples)};
    for (const std::uint64_t dimension : column.shape) shape.push_back(static_cast<std::int64_t>(dimension));
    // from_blob() takes no const memory, but nothing writes to a column
    tensors.push_back(at::from_blob(const_cast<std::byte*>(bytes.data()), shape, scalar_type(column.dtype)));
  }
  return tensors;
}

at::Tensor own_values(const ColumnValues& values, const at::Tensor& tensor) {
  if (values.row_ends.empty()) return {};
  const at::Tensor ends = at::empty({tensor.size(0), 1}, at::kLong);
  auto* const lengths = ends.data_ptr<std::int64_t>();
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < values.row_ends.size(); ++i) {
    lengths[i] = static_cast<std::int64_t>(values.row_ends[i] - begin);
    begin = values.row_ends[i];
  }
  return at::arange(tensor.size(1), at::kLong) < ends;
}

at::Tensor Pass::wanted_rows(const at::Tensor& values) const {
  return rows_.defined() ? values.index_select(0, rows_) : values;
}

const Variable& Pass::next_variable() {
  DISTTRAIN_CHECK_LT(next_, variables_.size());
  return variables_[next_++];
}

at::Tensor Pass::dense(const at::Tensor& inputs) {
  const at::Tensor& weight = next();
  const at::Tensor& bias = next();
  return at::addmm(bias, inputs, weight);
}

at::Tensor Pass::batch_norm(const at::Tensor& inputs) {
  const at::Tensor& weight = next();
  const at::Tensor& bias = next();
  const Variable& mean = next_variable();
  const Variable& variance = next_variable();
  // In a step batch_norm() moves the statistics that it gets towards those of the batch.
  return at::batch_norm(inputs, weight, bias, is_step() ? mean.next_value : mean.value,
                        is_step() ? variance.next_value : variance.value, is_step(), kBatchNormMomentum,
                        kBatchNormEpsilon, false);
}

at::Tensor Pass::dropout(const at::Tensor& values, double rate) {
  if (!drops(rate)) return values;
  const at::Tensor mask = at::empty(values.sizes(), at::kFloat);
  const auto elements = static_cast<std::size_t>(mask.numel());
  dropout_mask(*seed_, rate, {mask.data_ptr<float>(), elements}, random_numbers_);
  random_numbers_ += elements;
  return values * mask;
}

at::Tensor activate(Activation activation, const at::Tensor& values) {
  switch (activation) {
    case Activation::kSigmoid:
      return at::sigmoid(values);
    case Activation::kRelu:
      return at::relu(values);
    case Activation::kTanh:
      return at::tanh(values);
    case Activation::kGelu:
      break;
  }
  return at::gelu(values);
}

}  // namespace disttrain::workerd::autograd
