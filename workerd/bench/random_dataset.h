// A data set of random values that every builtin model takes: floats are 0 or 1, and integers are below the column's
// limit.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "input/dataset.h"

namespace disttrain::workerd {

class RandomDataset final : public input::Dataset {
 public:
  // `columns` is the number of the model's columns.
  explicit RandomDataset(std::size_t columns) : columns_(columns) {}

  std::uint64_t records() const override { return 1; }
  const std::vector<input::DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return 0; }
  const std::vector<std::string>& label_names() const override { return names_; }
  std::shared_ptr<const input::FittedColumns> fitted_columns() const override { return nullptr; }
  Status gather(std::span<const std::uint64_t>, std::span<const input::ColumnOut> columns,
                const input::Draw&) const override {
    for (const input::ColumnOut& column : columns) {
      const DType dtype = column.as.dtype;
      const std::uint64_t limit = column.as.limit > 0 ? column.as.limit : 2;
      if (dtype == DType::kFloat32) fill<float>(column.out, 2);
      if (dtype == DType::kFloat64) fill<double>(column.out, 2);
      if (dtype == DType::kUint8) fill<std::uint8_t>(column.out, limit);
      if (dtype == DType::kInt32) fill<std::int32_t>(column.out, limit);
      if (dtype == DType::kInt64) fill<std::int64_t>(column.out, limit);
      // All records of a ragged column have the largest length.
      for (std::size_t i = 0; i < column.row_ends.size(); ++i) column.row_ends[i] = (i + 1) * element_count(column.as);
    }
    return {};
  }

 private:
  template <typename T>
  void fill(std::span<std::byte> out, std::uint64_t limit) const {
    for (std::size_t at = 0; at < out.size(); at += sizeof(T))
      *reinterpret_cast<T*>(out.data() + at) = static_cast<T>(random_() % limit);
  }

  const std::vector<input::DatasetColumn> columns_;
  const std::vector<std::string> names_;
  mutable std::mt19937_64 random_{1};
};

}  // namespace disttrain::workerd
