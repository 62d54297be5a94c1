#include "input/numbered_dataset.h"

#include <cstring>
#include <string>

#include "common/check.h"

namespace disttrain::input {

namespace {

class NumberedDataset final : public Dataset {
 public:
  explicit NumberedDataset(std::uint64_t records) : records_(records) {}

  std::uint64_t records() const override { return records_; }
  const std::vector<DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return 0; }
  const std::vector<std::string>& label_names() const override { return no_names_; }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return nullptr; }

  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw&) const override {
    if (columns.empty()) return {};
    DISTTRAIN_CHECK_EQ(columns.size(), std::size_t{1});
    DISTTRAIN_CHECK(columns[0].as.dtype == DType::kInt64);
    DISTTRAIN_CHECK_EQ(columns[0].out.size(), indices.size_bytes());
    std::memcpy(columns[0].out.data(), indices.data(), indices.size_bytes());
    return {};
  }

 private:
  const std::uint64_t records_;
  const std::vector<DatasetColumn> columns_ = {{.name = "record", .dtype = DType::kInt64}};
  const std::vector<std::string> no_names_;
};

}  // namespace

std::unique_ptr<Dataset> make_numbered_dataset(std::uint64_t records) {
  return std::make_unique<NumberedDataset>(records);
}

std::vector<ColumnSpec> columns_of(const Dataset& dataset, double scale) {
  std::vector<ColumnSpec> columns;
  for (const DatasetColumn& column : dataset.columns()) {
    ColumnSpec spec{.name = column.name, .dtype = DType::kFloat32, .shape = {}};
    const bool keeps_its_type = column.name != "inputs" || scale == 1.0;
    if (keeps_its_type) spec.dtype = column.dtype;
    if (column.elements > 1 || column.are_tokens) spec.shape = {column.elements};
    spec.ragged = column.is_ragged;
    spec.pad = column.pad;
    spec.parts = column.parts;
    columns.push_back(std::move(spec));
  }
  return columns;
}

}  // namespace disttrain::input
