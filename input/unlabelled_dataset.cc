#include "input/unlabelled_dataset.h"

#include <algorithm>
#include <utility>

#include "common/config/columns.h"

namespace disttrain::input {

namespace {

bool is_left_out(const ColumnSection& column) {
  return column.kind == ColumnKind::kLabel || is_weight(column);
}

class UnlabelledDataset final : public Dataset {
 public:
  UnlabelledDataset(std::unique_ptr<Dataset> inner, const std::vector<DatasetColumn>& zeros)
      : inner_(std::move(inner)), columns_(inner_->columns()) {
    columns_.insert(columns_.end(), zeros.begin(), zeros.end());
  }

  std::uint64_t records() const override { return inner_->records(); }
  const std::vector<DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return inner_->bytes_read(); }
  const std::vector<std::string>& label_names() const override { return inner_->label_names(); }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return inner_->fitted_columns(); }
  std::vector<std::string> header() const override { return inner_->header(); }
  std::vector<std::uint64_t> blocks() const override { return inner_->blocks(); }
  std::uint64_t hash() const override { return inner_->hash(); }
  std::string notice() const override { return inner_->notice(); }
  std::vector<UnknownWords> unknown_words() const override { return inner_->unknown_words(); }
  const DataFigures* figures() const override { return inner_->figures(); }

  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw& draw) const override {
    std::vector<ColumnOut> others;
    for (const ColumnOut& column : columns) {
      if (column.from.array < inner_->columns().size())
        others.push_back(column);
      else
        std::fill(column.out.begin(), column.out.end(), std::byte{0});
    }
    return inner_->gather(indices, others, draw);
  }

 private:
  const std::unique_ptr<Dataset> inner_;
  std::vector<DatasetColumn> columns_;
};

}  // namespace

Source without_labels(Source source) {
  source.may_lack_labels = true;
  for (ColumnSection& column : source.columns)
    if (is_left_out(column)) column.kind = ColumnKind::kIgnore;
  return source;
}

std::unique_ptr<Dataset> with_zero_labels(std::unique_ptr<Dataset> dataset, const std::vector<ColumnSection>& columns) {
  std::vector<DatasetColumn> zeros;
  for (const ColumnSection& column : columns) {
    const std::vector<ColumnPart> parts = {{.name = column.name, .shape = {}}};
    if (column.kind == ColumnKind::kLabel)
      zeros.insert(
          zeros.begin(),
          {.name = "labels", .dtype = DType::kInt64, .are_classes = true, .smallest = 0, .largest = 0, .parts = parts});
    else if (is_weight(column))
      zeros.push_back({.name = "weights", .parts = parts});
  }
  if (zeros.empty()) return dataset;
  return std::make_unique<UnlabelledDataset>(std::move(dataset), zeros);
}

}  // namespace disttrain::input
