#include "workerd/input/table_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "workerd/input/columns.h"
#include "workerd/input/csv_table.h"
#include "workerd/input/record_format.h"
#include "workerd/input/record_stream.h"

namespace disttrain::input {

namespace {

class CsvReader final : public TableReader {
 public:
  CsvReader(const Source& source, std::unique_ptr<FileReader> file)
      : wanted_(wanted_columns(source.columns, source.missing)), file_(std::move(file)), tables_(*file_, wanted_) {}

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

class RecordTables final : public TableReader {
 public:
  RecordTables(const Source& source, std::unique_ptr<FileReader> file)
      : format_(make_record_format(format_options(source))), file_(std::move(file)), stream_(*file_, *format_) {}

  Result<bool> next(Table& table) override {
    Result<bool> more = stream_.next();
    if (!more.has_value() || !*more) return more;
    if (Status ok = format_->decode(stream_.block(), stream_.records(), table); !ok)
      return tl::unexpected(std::move(ok.error()));
    return true;
  }
  std::string place_of(std::uint64_t record) override { return name_of(stream_.block(), record); }
  std::uint64_t file_bytes() const override { return file_->file_bytes(); }

 private:
  const std::unique_ptr<RecordFormat> format_;
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
