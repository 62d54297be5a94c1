#include "input/parquet/parquet_tables.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "input/columns.h"
#include "input/parquet/parquet_file.h"

namespace disttrain::input {

namespace {

class ParquetTables final : public TableReader {
 public:
  ParquetTables(const Source& source, std::string path, std::unique_ptr<ParquetFile> file)
      : is_cancelled_(source.is_cancelled), path_(std::move(path)), file_(std::move(file)) {}

  Result<bool> next(Table& table) override {
    records_before_ += records_in_last_;
    records_in_last_ = 0;
    for (;;) {
      if (is_cancelled_ && is_cancelled_()) return fail(ErrorCode::kTemporary, path_ + ": cancelled");
      if (is_started_) {
        Result<bool> more = file_->next(table);
        if (!more.has_value()) return more;
        records_in_last_ = *more ? table.records : 0;
        if (*more) return true;
        ++group_;
        is_started_ = false;
      }
      if (group_ == file_->groups().size()) return false;
      if (Status ok = file_->start(group_); !ok) return tl::unexpected(std::move(ok.error()));
      is_started_ = true;
    }
  }

  std::string place_of(std::uint64_t record) override {
    return "data file \"" + path_ + "\", record " + std::to_string(records_before_ + record);
  }

  std::uint64_t file_bytes() const override {
    std::error_code problem;
    const auto bytes = std::filesystem::file_size(path_, problem);
    return problem ? 0 : bytes;
  }

 private:
  const IsCancelled is_cancelled_;
  const std::string path_;
  const std::unique_ptr<ParquetFile> file_;
  std::size_t group_ = 0;
  bool is_started_ = false;  // the row group `group_`
  std::uint64_t records_before_ = 0;
  std::uint64_t records_in_last_ = 0;
};

}  // namespace

Result<std::unique_ptr<TableReader>> open_parquet_tables(const Source& source, const std::string& path) {
  Result<std::unique_ptr<ParquetFile>> file =
      ParquetFile::open(path, wanted_columns(source.columns, source.missing), {.is_cancelled = source.is_cancelled});
  if (!file) return tl::unexpected(std::move(file.error()));
  return std::make_unique<ParquetTables>(source, path, std::move(*file));
}

}  // namespace disttrain::input
