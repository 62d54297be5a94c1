#include "workerd/input/memory_dataset.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "workerd/input/rows.h"
#include "workerd/input/typed_values.h"

namespace disttrain::input {

namespace {

enum Column : std::size_t { kInputs = 0, kLabels = 1 };

}  // namespace

MemoryDataset::MemoryDataset(Contents contents, std::uint64_t begin, std::uint64_t end, double scale)
    : contents_(std::move(contents)), begin_(begin), records_(end - begin), scale_(static_cast<float>(scale)) {
  DISTTRAIN_CHECK_LT(begin, end);
  DISTTRAIN_CHECK_LE(end, contents_.records);
  const DType inputs = contents_.bytes != nullptr ? DType::kUint8 : DType::kFloat32;
  columns_.push_back({.name = "inputs", .dtype = inputs, .elements = contents_.input_elements});
  if (contents_.target_elements == 0) {
    DISTTRAIN_CHECK_EQ(contents_.labels.size(), contents_.records);
    const auto first = contents_.labels.begin();
    const auto largest =
        std::max_element(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end));
    columns_.push_back({.name = "labels", .dtype = DType::kInt64, .elements = 1, .largest = *largest});
  } else {
    columns_.push_back({.name = "labels", .dtype = DType::kFloat32, .elements = contents_.target_elements});
  }
}

void MemoryDataset::gather(std::span<const std::uint64_t> indices, std::size_t column, const ColumnSpec& as,
                           std::span<std::byte> out) const {
  DISTTRAIN_CHECK_LT(column, columns_.size());
  DISTTRAIN_CHECK_EQ(out.size(), indices.size() * element_count(as) * size_of(as.dtype));
  for (const std::uint64_t index : indices) DISTTRAIN_CHECK_LT(index, records_);
  const bool is_float = as.dtype == DType::kFloat32 || as.dtype == DType::kFloat64;
  with_type(as.dtype, out, [&](auto values) {
    if (column == kInputs)
      gather_inputs(indices, is_float ? scale_ : 1.0F, values);
    else
      gather_targets(indices, values);
  });
}

template <typename T>
void MemoryDataset::gather_inputs(std::span<const std::uint64_t> indices, float scale, std::span<T> out) const {
  const std::uint64_t elements = contents_.input_elements;
  if (contents_.bytes != nullptr) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(contents_.bytes.get());
    gather_rows(bytes + begin_ * elements, elements, indices, scale, out.data());
  } else {
    gather_rows(contents_.floats.data() + begin_ * elements, elements, indices, scale, out.data());
  }
}

template <typename T>
void MemoryDataset::gather_targets(std::span<const std::uint64_t> indices, std::span<T> out) const {
  if (indices.empty()) return;
  const std::size_t width = out.size() / indices.size();
  if (contents_.target_elements != 0) {
    DISTTRAIN_CHECK_EQ(width, contents_.target_elements);
    gather_rows(contents_.targets.data() + begin_ * width, width, indices, 1.0F, out.data());
    return;
  }
  if (width > 1) std::fill(out.begin(), out.end(), T(0));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t label = contents_.labels[begin_ + indices[i]];
    if (width == 1) {
      out[i] = static_cast<T>(label);
    } else {
      DISTTRAIN_CHECK_LT(static_cast<std::uint64_t>(label), width);
      out[i * width + static_cast<std::size_t>(label)] = T(1);
    }
  }
}

}  // namespace disttrain::input
