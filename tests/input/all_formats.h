// Writes the same records in each format with [data.columns] that has named columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/config/job_config.h"
#include "tests/input/input_files.h"
#include "tests/input/parquet_files.h"
#include "transport/wire/checksum.h"

namespace disttrain::input {

// A value of a record. A csv file and a member of a tar file have only text, and no lists.
struct Null {
  bool operator==(const Null&) const = default;
};
using Cell =
    std::variant<Null, std::string, std::int64_t, double, bool, std::vector<double>, std::vector<std::int64_t>>;

struct Field {
  std::string column;
  Cell value;
};
using Record = std::vector<Field>;  // with the same columns, in the same order, in each record

inline const std::vector<DataFormat>& formats_of_columns() {
  static const std::vector<DataFormat> kFormats = {DataFormat::kCsv, DataFormat::kJsonl, DataFormat::kTfrecord,
                                                   DataFormat::kParquet, DataFormat::kWebdataset};
  return kFormats;
}

inline std::string name_of(DataFormat format) {
  switch (format) {
    case DataFormat::kCsv:
      return "csv";
    case DataFormat::kJsonl:
      return "jsonl";
    case DataFormat::kTfrecord:
      return "tfrecord";
    case DataFormat::kParquet:
      return "parquet";
    default:
      return "webdataset";
  }
}

inline bool has_lists(DataFormat format) {
  return format != DataFormat::kCsv && format != DataFormat::kWebdataset;
}

template <typename T>
bool is(const Cell& cell) {
  return std::holds_alternative<T>(cell);
}

inline std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::ostringstream out;
  out.precision(17);
  out << number;
  return out.str();
}

// The cell as the text of a csv field or of a file.
inline std::string plain_text(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&cell)) return number_text(*number);
  if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "1" : "0";
  EXPECT_TRUE(is<Null>(cell)) << "a list";
  return "";
}

inline std::string json_text(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    json += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ? escaped : std::string(1, c);
  }
  return json + "\"";
}

inline std::string json_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return number_text(number);
}

inline std::string json_of(const Cell& cell) {
  if (is<Null>(cell)) return "null";
  if (const auto* text = std::get_if<std::string>(&cell)) return json_text(*text);
  if (const auto* number = std::get_if<double>(&cell)) return json_number(*number);
  if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  std::string list = "[";
  if (const auto* numbers = std::get_if<std::vector<double>>(&cell))
    for (const double number : *numbers) list += (list.size() > 1 ? "," : "") + json_number(number);
  if (const auto* wholes = std::get_if<std::vector<std::int64_t>>(&cell))
    for (const std::int64_t whole : *wholes) list += (list.size() > 1 ? "," : "") + std::to_string(whole);
  return list + "]";
}

inline std::string csv_of(const std::vector<Record>& records) {
  std::string text;
  for (const Field& field : records.front()) text += (text.empty() ? "" : ",") + field.column;
  text += "\n";
  for (const Record& record : records) {
    std::string line;
    for (const Field& field : record) {
      std::string quoted;
      for (const char c : plain_text(field.value)) quoted += c == '"' ? "\"\"" : std::string(1, c);
      line += (&field == &record.front() ? "" : ",") + ("\"" + quoted + "\"");
    }
    text += line + "\n";
  }
  return text;
}

inline std::string jsonl_of(const std::vector<Record>& records) {
  std::string text;
  for (const Record& record : records) {
    std::string line = "{";
    for (const Field& field : record)
      line += (line.size() > 1 ? ", " : "") + json_text(field.column) + ": " + json_of(field.value);
    text += line + "}\n";
  }
  return text;
}

// Protobuf's varints and length-delimited fields.
inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string pbf(int field, const std::string& bytes) {
  return static_cast<char>(field << 3 | 2) + varint(bytes.size()) + bytes;
}

inline std::string feature_of(const Cell& cell) {
  std::vector<std::int64_t> wholes;
  std::string floats;
  const auto add = [&floats](double number) {
    const auto narrow = static_cast<float>(number);
    char raw[4];
    std::memcpy(raw, &narrow, 4);
    floats.append(raw, 4);
  };
  if (const auto* text = std::get_if<std::string>(&cell)) return pbf(1, pbf(1, *text));
  if (const auto* number = std::get_if<double>(&cell)) add(*number);
  if (const auto* numbers = std::get_if<std::vector<double>>(&cell))
    for (const double number : *numbers) add(number);
  if (!floats.empty()) return pbf(2, pbf(1, floats));
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) wholes = {*whole};
  if (const auto* flag = std::get_if<bool>(&cell)) wholes = {*flag ? 1 : 0};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&cell)) wholes = *list;
  std::string packed;
  for (const std::int64_t whole : wholes) packed += varint(static_cast<std::uint64_t>(whole));
  return pbf(3, pbf(1, packed));
}

// A feature by its name, in Features.
inline std::string example_entry(const std::string& name, const std::string& feature) {
  return pbf(1, pbf(1, name) + pbf(2, feature));
}

inline std::string masked_crc_of(const std::string& bytes) {
  const std::uint32_t crc = wire::crc32c(std::as_bytes(std::span(bytes)));
  const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  return bytes_of<std::uint32_t>({masked}, false);
}

inline std::string tfrecord_of_example(const std::string& example) {
  const std::string length = bytes_of<std::uint64_t>({example.size()}, false);
  return length + masked_crc_of(length) + example + masked_crc_of(example);
}

inline std::string tfrecord_of(const std::vector<Record>& records) {
  std::string file;
  for (const Record& record : records) {
    std::string features;
    for (const Field& field : record)
      if (!is<Null>(field.value)) features += example_entry(field.column, feature_of(field.value));
    file += tfrecord_of_example(pbf(1, features));
  }
  return file;
}

inline std::string tar_member(const std::string& name, const std::string& content) {
  std::string header(512, '\0');
  const auto put = [&header](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  char size[16];
  std::snprintf(size, sizeof(size), "%011o", static_cast<unsigned>(content.size()));
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, size);
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char checksum[16];
  std::snprintf(checksum, sizeof(checksum), "%06o", sum);
  put(148, checksum);
  header[154] = '\0';
  std::string member = header + content;
  member.resize((member.size() + 511) / 512 * 512);
  return member;
}

inline std::string tar_of(const std::vector<Record>& records) {
  std::string file;
  for (std::size_t i = 0; i < records.size(); ++i) {
    file += tar_member(std::to_string(i) + ".begin", "");
    for (const Field& field : records[i])
      if (!is<Null>(field.value)) file += tar_member(std::to_string(i) + "." + field.column, plain_text(field.value));
  }
  return file + std::string(1024, '\0');
}

template <typename T>
std::vector<std::optional<T>> cells_of(const std::vector<Record>& records, std::size_t column) {
  std::vector<std::optional<T>> cells;
  for (const Record& record : records) {
    const Cell& cell = record[column].value;
    if (is<Null>(cell))
      cells.push_back(std::nullopt);
    else if constexpr (std::is_same_v<T, std::string>)
      cells.push_back(plain_text(cell));
    else if constexpr (std::is_same_v<T, double>)
      cells.push_back(is<double>(cell)         ? std::get<double>(cell)
                      : is<std::int64_t>(cell) ? static_cast<double>(std::get<std::int64_t>(cell))
                                               : static_cast<double>(std::get<bool>(cell)));
    else
      cells.push_back(std::get<T>(cell));
  }
  return cells;
}

template <typename Builder, typename T>
ParquetColumn list_column(const std::string& name, const std::vector<Record>& records, std::size_t column) {
  const auto values = std::make_shared<Builder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), values);
  for (const Record& record : records) {
    const Cell& cell = record[column].value;
    if (is<Null>(cell)) {
      EXPECT_TRUE(lists.AppendNull().ok());
      continue;
    }
    EXPECT_TRUE(lists.Append().ok());
    for (const T value : std::get<std::vector<T>>(cell)) EXPECT_TRUE(values->Append(value).ok());
  }
  return {name, *lists.Finish()};
}

// A column has one type: that of its cells, double if some are fractions, or string if some are texts.
inline ParquetColumn parquet_column_of(const std::vector<Record>& records, std::size_t column) {
  const auto any = [&](auto type) {
    for (const Record& record : records)
      if (is<decltype(type)>(record[column].value)) return true;
    return false;
  };
  const std::string& name = records.front()[column].column;
  if (any(std::vector<double>())) return list_column<arrow::DoubleBuilder, double>(name, records, column);
  if (any(std::vector<std::int64_t>())) return list_column<arrow::Int64Builder, std::int64_t>(name, records, column);
  const auto is_latin1 = [column](const Record& record) {
    const auto* const text = std::get_if<std::string>(&record[column].value);
    return text != nullptr && text->find_first_of("\xFC\xFF") != std::string::npos;
  };
  if (std::any_of(records.begin(), records.end(), is_latin1))  // Arrow's strings are UTF-8
    return parquet_column<arrow::BinaryBuilder>(name, cells_of<std::string>(records, column));
  if (any(std::string())) return parquet_column<arrow::StringBuilder>(name, cells_of<std::string>(records, column));
  if (any(double())) return parquet_column<arrow::DoubleBuilder>(name, cells_of<double>(records, column));
  if (any(std::int64_t())) return parquet_column<arrow::Int64Builder>(name, cells_of<std::int64_t>(records, column));
  return parquet_column<arrow::BooleanBuilder>(name, cells_of<bool>(records, column));
}

inline void write_records(DataFormat format, const std::string& path, const std::vector<Record>& records) {
  if (format == DataFormat::kParquet) {
    std::vector<ParquetColumn> columns;
    for (std::size_t c = 0; c < records.front().size(); ++c) columns.push_back(parquet_column_of(records, c));
    return write_parquet(path, columns, static_cast<std::int64_t>(records.size()));
  }
  std::ofstream(path, std::ios::binary) << (format == DataFormat::kCsv        ? csv_of(records)
                                            : format == DataFormat::kJsonl    ? jsonl_of(records)
                                            : format == DataFormat::kTfrecord ? tfrecord_of(records)
                                                                              : tar_of(records));
}

// What a data set gives for its records: the values of each array, or an error.
struct Given {
  std::vector<float> inputs;
  std::vector<std::int64_t> categories;
  std::vector<std::int64_t> classes;
  std::vector<float> targets;
  std::vector<float> weights;
  std::vector<std::int64_t> tokens;  // of the first column of tokens or bytes with a length
  std::string error;
};

inline Given given_of(const Result<std::unique_ptr<Dataset>>& loaded) {
  Given given;
  if (!loaded) {
    given.error = loaded.error().message;
    return given;
  }
  const Dataset& dataset = **loaded;
  std::vector<std::uint64_t> indices(dataset.records());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  for (std::size_t c = 0; c < dataset.columns().size() && given.error.empty(); ++c) {
    const DatasetColumn& column = dataset.columns()[c];
    const auto read = [&](auto& to, DType dtype) {
      to.resize(indices.size() * column.elements);
      const std::vector<ColumnOut> outs = {
          {{.name = "", .dtype = dtype, .shape = {column.elements}}, std::as_writable_bytes(std::span(to)), {c, 0}}};
      if (const Status ok = dataset.gather(indices, outs, {}); !ok) given.error = ok.error().message;
    };
    if (column.name == "inputs")
      read(given.inputs, DType::kFloat32);
    else if (column.name == "weights")
      read(given.weights, DType::kFloat32);
    else if (column.name == "labels" && column.dtype != DType::kInt64)
      read(given.targets, DType::kFloat32);
    else
      read(column.name == "categories" ? given.categories
           : column.name == "labels"   ? given.classes
                                       : given.tokens,
           DType::kInt64);
  }
  if (given.error.empty()) return given;
  Given refused;
  refused.error = given.error;
  return refused;
}

}  // namespace disttrain::input
