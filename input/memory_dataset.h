// A data set that holds all values in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "input/column_parts.h"
#include "input/dataset.h"
#include "input/token_rows.h"

namespace disttrain::input {

// The values of one column for all records, record by record.
struct Values {
  DType dtype = DType::kFloat32;  // kUint8, kInt32, kInt64, kFloat32 or kFloat64
  std::uint64_t elements = 0;     // of one record; 0: there are no values
  std::unique_ptr<std::byte[]> bytes;
  std::vector<std::uint64_t> shape = {};  // DatasetColumn::shape
};
Values values_of(const std::vector<float>& values, std::uint64_t elements);

// All records of all files of a data set; data.records may select only some of them.
struct Contents {
  std::uint64_t records = 0;
  Values inputs;
  Values categories;  // only with [data.columns]
  // Only with [data.columns]: each column of tokens or bytes, and the arrays that are made of them.
  std::vector<TokenRows> tokens;
  std::vector<TokenArray> token_arrays;
  std::string bucket_by;             // Source::bucket_by
  std::vector<std::int64_t> labels;  // one per record; may be empty with targets or [data.columns]
  Values targets;
  Values weights;  // only with [data.columns]
  std::vector<std::string> label_names;
  std::vector<std::string> header;              // Dataset::header()
  Parts parts;                                  // only with [data.columns]
  std::shared_ptr<const FittedColumns> fitted;  // only with [data.columns]
  std::uint64_t bytes_read = 0;
  std::vector<UnknownWords> unknown;  // only with [data.columns]
  std::string notice;                 // Dataset::notice()
};

class MemoryDataset final : public Dataset {
 public:
  // The data set has the records [begin, end) of `contents`. Requires begin < end <= contents.records.
  MemoryDataset(Contents contents, std::uint64_t begin, std::uint64_t end, double scale);

  std::uint64_t records() const override { return records_; }
  const std::vector<DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return contents_.bytes_read; }
  std::span<const std::uint32_t> lengths() const override { return lengths_; }
  std::uint64_t hash() const override { return hash_; }
  const std::vector<std::string>& label_names() const override { return contents_.label_names; }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return contents_.fitted; }
  std::vector<std::string> header() const override { return contents_.header; }
  std::string notice() const override { return contents_.notice; }
  std::vector<UnknownWords> unknown_words() const override { return contents_.unknown; }
  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw& draw) const override;

 private:
  void gather_column(std::span<const std::uint64_t> indices, const ColumnOut& to) const;
  std::uint64_t hash_of_selected() const;
  void add_labels();
  void add_column(const char* name, const Values& values, const std::vector<ColumnPart>& parts);
  // The values of the records [begin_, begin_ + records_).
  std::span<std::byte> selected(const Values& values) const;
  template <typename T>
  void gather_values(const Values& values, std::uint64_t first, std::span<const std::uint64_t> indices, double scale,
                     std::span<T> out) const;
  template <typename T>
  void gather_labels(std::span<const std::uint64_t> indices, std::span<T> out) const;

  const Contents contents_;
  const std::uint64_t begin_;
  const std::uint64_t records_;
  const double scale_;
  std::uint64_t hash_ = 0;
  std::vector<std::uint32_t> lengths_;
  // Column i takes its values from origins_[i].
  struct Origin {
    const Values* values = nullptr;
    const TokenArray* tokens = nullptr;
    // Neither of them: the labels.
  };
  std::vector<DatasetColumn> columns_;
  std::vector<Origin> origins_;
};

}  // namespace disttrain::input
