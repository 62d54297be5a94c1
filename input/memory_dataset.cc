#include "input/memory_dataset.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "common/check.h"
#include "input/rows.h"
#include "input/typed_values.h"

namespace disttrain::input {

Values values_of(const std::vector<float>& values, std::uint64_t elements) {
  Values made{DType::kFloat32, elements, std::make_unique_for_overwrite<std::byte[]>(values.size() * sizeof(float))};
  if (!values.empty()) std::memcpy(made.bytes.get(), values.data(), values.size() * sizeof(float));
  return made;
}

MemoryDataset::MemoryDataset(Contents contents, std::uint64_t begin, std::uint64_t end, double scale)
    : contents_(std::move(contents)), begin_(begin), records_(end - begin), scale_(scale) {
  DISTTRAIN_CHECK_LT(begin, end);
  DISTTRAIN_CHECK_LE(end, contents_.records);
  hash_ = hash_of_selected();
  if (contents_.inputs.elements > 0) add_column("inputs", contents_.inputs, contents_.parts.inputs);
  if (contents_.categories.elements > 0) add_column("categories", contents_.categories, contents_.parts.categories);
  for (const TokenArray& array : contents_.token_arrays) {
    columns_.push_back(column_of(array));
    origins_.push_back({.tokens = &array});
    if (array.name == contents_.bucket_by) lengths_ = lengths_of(contents_.tokens[array.column], begin, end);
  }
  add_labels();
  if (contents_.weights.elements > 0) add_column("weights", contents_.weights, contents_.parts.weights);
}

void MemoryDataset::add_labels() {
  if (contents_.targets.elements > 0) return add_column("labels", contents_.targets, contents_.parts.labels);
  if (contents_.labels.empty() && contents_.fitted != nullptr) return;
  DISTTRAIN_CHECK_EQ(contents_.labels.size(), contents_.records);
  const auto range = range_of(std::span(contents_.labels).subspan(begin_, records_));
  columns_.push_back({.name = "labels",
                      .dtype = DType::kInt64,
                      .elements = 1,
                      .are_classes = range.smallest >= 0,
                      .smallest = range.smallest,
                      .largest = range.largest,
                      .parts = contents_.parts.labels});
  origins_.push_back({});
}

std::uint64_t MemoryDataset::hash_of_selected() const {
  std::uint64_t hash = records_;
  const auto add = [&hash](const void* bytes, std::size_t size) { hash = XXH3_64bits_withSeed(bytes, size, hash); };
  for (const Values* values : {&contents_.inputs, &contents_.categories, &contents_.targets, &contents_.weights})
    if (values->elements > 0) add(selected(*values).data(), selected(*values).size());
  for (const TokenRows& tokens : contents_.tokens)
    for (std::uint64_t i = begin_; i < begin_ + records_; ++i) {
      const TokenRow row = tokens.row(i);
      const std::span<const std::byte> bytes = row.raw.empty() ? std::as_bytes(row.ids) : std::as_bytes(row.raw);
      hash = XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash + row.size());
    }
  if (!contents_.labels.empty()) add(contents_.labels.data() + begin_, records_ * sizeof(std::int64_t));
  return hash;
}

void MemoryDataset::add_column(const char* name, const Values& values, const std::vector<ColumnPart>& parts) {
  DatasetColumn column{
      .name = name, .dtype = values.dtype, .elements = values.elements, .parts = parts, .shape = values.shape};
  with_type(values.dtype, selected(values), [&column]<typename T>(std::span<T> found) {
    if constexpr (std::is_integral_v<T>) {
      const auto range = range_of(std::span<const T>(found));
      column.smallest = range.smallest;
      column.largest = range.largest;
    }
  });
  columns_.push_back(std::move(column));
  origins_.push_back({.values = &values});
}

std::span<std::byte> MemoryDataset::selected(const Values& values) const {
  const std::uint64_t record_bytes = values.elements * size_of(values.dtype);
  return {values.bytes.get() + begin_ * record_bytes, records_ * record_bytes};
}

Status MemoryDataset::gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                             const Draw&) const {
  for (const std::uint64_t index : indices) DISTTRAIN_CHECK_LT(index, records_);
  for (const ColumnOut& column : columns) gather_column(indices, column);
  return {};
}

void MemoryDataset::gather_column(std::span<const std::uint64_t> indices, const ColumnOut& to) const {
  DISTTRAIN_CHECK_LT(to.from.array, columns_.size());
  if (to.strings == nullptr)
    DISTTRAIN_CHECK_EQ(to.out.size(), indices.size() * element_count(to.as) * size_of(to.as.dtype));
  const Origin& from = origins_[to.from.array];
  if (from.tokens != nullptr) {
    const TokenRows& rows = contents_.tokens[from.tokens->column];
    return write_tokens(
        *from.tokens, indices.size(), [&](std::size_t i) { return rows.row(begin_ + indices[i]); }, to);
  }
  const double scale = from.values == &contents_.inputs ? scale_ : 1.0;
  with_type(to.as.dtype, to.out, [&](auto values) {
    if (from.values != nullptr)
      gather_values(*from.values, to.from.first, indices, scale, values);
    else
      gather_labels(indices, values);
  });
}

template <typename T>
void MemoryDataset::gather_values(const Values& values, std::uint64_t first, std::span<const std::uint64_t> indices,
                                  double scale, std::span<T> out) const {
  if (indices.empty()) return;
  const std::uint64_t width = out.size() / indices.size();
  DISTTRAIN_CHECK_LE(first + width, values.elements);
  with_type(values.dtype, selected(values), [&](auto from) {
    gather_rows(from.data() + first, {width, values.elements}, indices, scale, out.data());
  });
}

template <typename T>
void MemoryDataset::gather_labels(std::span<const std::uint64_t> indices, std::span<T> out) const {
  if (indices.empty()) return;
  const std::size_t width = out.size() / indices.size();
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
