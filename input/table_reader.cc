#include "input/table_reader.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "input/column_values.h"
#include "input/columns.h"
#include "input/csv_table.h"
#include "input/record_format.h"
#include "input/record_stream.h"

namespace disttrain::input {

namespace {

class CsvReader final : public TableReader {
 public:
  CsvReader(const Source& source, std::unique_ptr<FileReader> file)
      : wanted_(wanted_columns(source.columns, source.missing)),
        file_(std::move(file)),
        tables_(*file_, wanted_, has_header_line(source.columns)) {}

  Result<bool> next(Table& table) override { return tables_.next(table); }
  std::string place_of(std::uint64_t record) override {
    return file_->path() + ":" + std::to_string(tables_.line_of(record));
  }
  std::uint64_t file_bytes() const override { return file_->file_bytes(); }

 private:
  const std::vector<WantedColumn> wanted_;
  const std::unique_ptr<FileReader> file_;
  CsvTables tables_;
};

// The most records of a table. A line of libsvm with a few bytes may have a million numbers, most of them 0.
std::size_t most_records(const Source& source) {
  constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 22;
  if (source.format != DataFormat::kLibsvm) return std::numeric_limits<std::size_t>::max();
  std::uint64_t numbers = 1;
  for (const ColumnSection& column : source.columns)
    if (column.kind == ColumnKind::kNumeric) numbers += value_count(column);
  return std::max<std::uint64_t>(1, kMostNumbers / numbers);
}

class RecordTables final : public TableReader {
 public:
  RecordTables(const Source& source, std::unique_ptr<FileReader> file)
      : format_(make_record_format(format_options(source))),
        most_records_(most_records(source)),
        file_(std::move(file)),
        stream_(*file_, *format_) {}

  Result<bool> next(Table& table) override {
    first_ += table_records_;
    table_records_ = 0;
    if (first_ == block_records_) {
      Result<bool> more = stream_.next();
      if (!more.has_value() || !*more) return more;
      first_ = 0;
      block_records_ = stream_.records().size();
    }
    table_records_ = std::min(most_records_, block_records_ - first_);
    RecordBlock block = stream_.block();
    block.first_record += first_;
    if (Status ok = format_->decode(block, std::span(stream_.records()).subspan(first_, table_records_), table); !ok)
      return tl::unexpected(std::move(ok.error()));
    return true;
  }
  std::string place_of(std::uint64_t record) override { return name_of(stream_.block(), first_ + record); }
  std::uint64_t file_bytes() const override { return file_->file_bytes(); }

 private:
  // The records of the stream's block that the last table has: `table_records_` from `first_` on.
  std::size_t first_ = 0;
  std::size_t table_records_ = 0;
  std::size_t block_records_ = 0;
  const std::unique_ptr<RecordFormat> format_;
  const std::size_t most_records_;
  const std::unique_ptr<FileReader> file_;
  RecordStream stream_;
};

// A file whose only wanted column is its folder's name needn't be read.
class FolderNameReader final : public TableReader {
 public:
  FolderNameReader(const Source& source, std::string path)
      : format_(make_record_format(format_options(source))), path_(std::move(path)) {}

  Result<bool> next(Table& table) override {
    if (std::exchange(is_read_, true)) return false;
    const RecordPlace whole;
    if (Status ok = format_->decode({.path = path_, .is_last = true, .bytes = {}}, {&whole, 1}, table); !ok)
      return tl::unexpected(std::move(ok.error()));
    return true;
  }
  std::string place_of(std::uint64_t) override { return path_; }
  std::uint64_t file_bytes() const override { return 0; }

 private:
  const std::unique_ptr<RecordFormat> format_;
  const std::string path_;
  bool is_read_ = false;
};

}  // namespace

Result<std::unique_ptr<TableReader>> TableReader::open(const Source& source, const std::string& path) {
  if (source.format == DataFormat::kParquet) {
    if (source.parquet != nullptr) return source.parquet->open_tables(source, path);
    return fail(ErrorCode::kConfig, path + ": this program doesn't read parquet files");
  }
  if (source.format == DataFormat::kImages) {
    const std::vector<WantedColumn> wanted = wanted_columns(source.columns, source.missing);
    const bool is_name_only =
        std::all_of(wanted.begin(), wanted.end(), [](const WantedColumn& column) { return column.name == "class"; });
    if (is_name_only) return std::make_unique<FolderNameReader>(source, path);
  }
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, source.is_cancelled, source.max_expansion);
  if (!file) return tl::unexpected(std::move(file.error()));
  if (source.format == DataFormat::kCsv) return std::make_unique<CsvReader>(source, std::move(*file));
  return std::make_unique<RecordTables>(source, std::move(*file));
}

}  // namespace disttrain::input
