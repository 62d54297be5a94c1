#include <algorithm>
#include <utility>

#include "workerd/input/columns.h"
#include "workerd/input/csv_table.h"
#include "workerd/input/find_files.h"
#include "workerd/input/load.h"
#include "workerd/input/read_parallel.h"

namespace disttrain::input {

namespace {

struct FilePart {
  FileColumns columns;
  std::uint64_t file_bytes = 0;
};

Result<FilePart> read_columns(const Source& source, const std::string& path) {
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, source.is_cancelled);
  if (!file) return tl::unexpected(std::move(file.error()));
  const std::vector<WantedColumn> wanted = wanted_columns(source.columns);
  CsvTables tables(**file, wanted, source.missing);
  FilePart part{FileColumns(source.columns), (*file)->file_bytes()};
  Table table;
  for (;;) {
    const Result<bool> more = tables.next(table);
    if (!more.has_value()) return tl::unexpected(more.error());
    if (!*more) break;
    const Status taken = part.columns.take(
        table, [&](std::uint64_t record) { return path + ":" + std::to_string(tables.line_of(record)); });
    if (!taken) return tl::unexpected(taken.error());
  }
  if (part.columns.records() == 0)
    return fail(ErrorCode::kData, path + ": has no records, expected at least one: fetch it again or leave it out");
  return part;
}

}  // namespace

Result<Contents> load_columns(const Source& source) {
  const Result<std::vector<std::string>> paths = find_files(source, source.files, source.files_key);
  if (!paths) return tl::unexpected(paths.error());
  Result<std::vector<FilePart>> parts =
      read_parallel<FilePart>(*paths, [&source](const std::string& path) { return read_columns(source, path); });
  if (!parts) return tl::unexpected(parts.error());
  std::vector<FileColumns> files;
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  for (FilePart& part : *parts) {
    bytes += part.file_bytes;
    records += part.columns.records();
    files.push_back(std::move(part.columns));
  }
  // load_dataset() refuses a range that the files don't have.
  const std::uint64_t end = source.end == 0 ? records : std::min(source.end, records);
  const std::uint64_t begin = std::min(source.begin, end);
  std::shared_ptr<const FittedColumns> fitted = source.fitted;
  if (fitted == nullptr) {
    Result<FittedColumns> computed = fit_columns(source.columns, files, begin, end);
    if (!computed) return tl::unexpected(computed.error());
    fitted = std::make_shared<const FittedColumns>(std::move(*computed));
  }
  Result<Contents> contents = encode_columns(source.columns, *fitted, files, begin, end);
  if (!contents) return contents;
  contents->bytes_read = bytes;
  contents->fitted = std::move(fitted);
  return contents;
}

}  // namespace disttrain::input
