// Writes Parquet files for tests.
#pragma once

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace disttrain::input {

struct ParquetColumn {
  std::string name;
  std::shared_ptr<arrow::Array> values;
};

// A column; nullopt is null.
template <typename Builder, typename T>
ParquetColumn parquet_column(const std::string& name, const std::vector<std::optional<T>>& values) {
  Builder builder;
  for (const std::optional<T>& value : values)
    EXPECT_TRUE((value ? builder.Append(*value) : builder.AppendNull()).ok());
  return {name, *builder.Finish()};
}

inline void write_parquet(const std::string& path, const std::vector<ParquetColumn>& columns,
                          std::int64_t group_records, bool has_nullable_columns = true) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const ParquetColumn& column : columns) {
    fields.push_back(arrow::field(column.name, column.values->type(), has_nullable_columns));
    arrays.push_back(column.values);
  }
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  const auto file = *arrow::io::FileOutputStream::Open(path);
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, group_records).ok());
  ASSERT_TRUE(file->Close().ok());
}

}  // namespace disttrain::input
