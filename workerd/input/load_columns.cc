#include <algorithm>
#include <cstring>
#include <utility>

#include "workerd/input/column_parts.h"
#include "workerd/input/columns.h"
#include "workerd/input/find_files.h"
#include "workerd/input/fit_files.h"
#include "workerd/input/load.h"
#include "workerd/input/read_parallel.h"
#include "workerd/input/table_reader.h"
#include "workerd/input/table_slice.h"

namespace disttrain::input {

namespace {

struct FilePart {
  EncodedRows rows;
  std::uint64_t file_bytes = 0;
};

Result<FilePart> encode_file(const Source& source, const ColumnEncoder& encoder, const std::string& path) {
  const Result<std::unique_ptr<TableReader>> reader = TableReader::open(source, path);
  if (!reader) return tl::unexpected(reader.error());
  FilePart part{{}, (*reader)->file_bytes()};
  Table table;
  for (;;) {
    const Result<bool> more = (*reader)->next(table);
    if (!more.has_value()) return tl::unexpected(more.error());
    if (!*more) break;
    const Status ok = encoder.encode(
        table, [&reader](std::uint64_t record) { return (*reader)->place_of(record); }, part.rows);
    if (!ok) return tl::unexpected(ok.error());
  }
  if (part.rows.records == 0)
    return fail(ErrorCode::kData, path + ": has no records, expected at least one: fetch it again or leave it out");
  return part;
}

// Appends the values of each part, and frees them as soon as they are copied.
template <typename T>
std::unique_ptr<std::byte[]> joined(std::vector<FilePart>& parts, LargeArray<T> EncodedRows::*values) {
  std::size_t bytes = 0;
  for (const FilePart& part : parts) bytes += (part.rows.*values).size() * sizeof(T);
  auto all = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::byte* to = all.get();
  for (FilePart& part : parts) {
    const auto from = std::as_bytes(std::span(part.rows.*values));
    to = std::copy(from.begin(), from.end(), to);
    part.rows.*values = {};
  }
  return all;
}

}  // namespace

Result<Contents> load_columns(const Source& source, const std::vector<std::string>& paths) {
  std::shared_ptr<const FittedColumns> fitted = source.fitted;
  if (fitted == nullptr) {
    Result<FittedColumns> found = fit_files(source, paths);
    if (!found) return tl::unexpected(found.error());
    fitted = std::make_shared<const FittedColumns>(std::move(*found));
  }
  const ColumnEncoder encoder(source.columns, *fitted);
  Result<std::vector<FilePart>> parts =
      read_parallel<FilePart>(paths, [&](const std::string& path) { return encode_file(source, encoder, path); });
  if (!parts) return tl::unexpected(parts.error());
  Contents contents;
  for (const FilePart& part : *parts) {
    contents.records += part.rows.records;
    contents.bytes_read += part.file_bytes;
  }
  contents.inputs = {DType::kFloat32, encoder.inputs(), joined(*parts, &EncodedRows::inputs)};
  contents.categories = {DType::kInt32, encoder.categories(), joined(*parts, &EncodedRows::categories)};
  if (encoder.has_classes()) {
    contents.labels.resize(contents.records);
    const auto classes = joined(*parts, &EncodedRows::classes);
    std::memcpy(contents.labels.data(), classes.get(), contents.records * sizeof(std::int64_t));
  } else {
    contents.targets = {DType::kFloat32, 1, joined(*parts, &EncodedRows::targets)};
  }
  for (std::size_t i = 0; i < source.columns.size(); ++i)
    if (source.columns[i].kind == ColumnKind::kLabel) contents.label_names = fitted->columns[i].vocabulary;
  contents.parts = parts_of(source.columns, *fitted);
  contents.fitted = std::move(fitted);
  return contents;
}

}  // namespace disttrain::input
