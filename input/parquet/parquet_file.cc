#include "input/parquet/parquet_file.h"

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type_traits.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/statistics.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "common/check.h"
#include "common/printable.h"
#include "input/column_text.h"
#include "input/file_reader.h"
#include "input/list_shape.h"
#include "input/order.h"
#include "input/parquet/arrow_column.h"
#include "input/parquet/input_file.h"
#include "input/parquet/int96.h"
#include "input/parquet/plain_column.h"
#include "input/record_block.h"

namespace disttrain::input {

namespace {

// A table should stay in the processor's cache until its values are encoded. But a column with a dictionary is read
// faster if many of its values come at a time.
constexpr std::uint64_t kTableBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMinTableRecords = 1024;
constexpr std::uint64_t kMaxTableRecords = 16 * 1024;
// Each open column reads so many bytes at a time.
constexpr std::int64_t kReadBytes = 256 * 1024;

// The most memory that a file of this size may take for decoded values. A page of a damaged file may claim to have any
// size, and Arrow fills so much memory with zeros before it finds out that the file is shorter. Pages of sound files
// aren't compressed to a thousandth, unless they are small.
std::int64_t most_memory(std::int64_t file_bytes) {
  constexpr std::int64_t kSmallPages = std::int64_t{256} << 20;
  constexpr std::int64_t kMostCompression = 1024;
  return std::min(kMaxParquetBytes, kSmallPages + kMostCompression * std::min(file_bytes, kMaxParquetBytes));
}

tl::unexpected<Error> damaged(const std::string& path, const std::string& why) {
  return fail(ErrorCode::kData, "data file \"" + path + "\" can't be read as a Parquet file (Arrow: " + why +
                                    "); copy the file again, and check data.format");
}

// A table may live longer than the reader. A batch frees its memory into the pool.
struct Kept {
  std::shared_ptr<arrow::MemoryPool> pool;
  std::shared_ptr<arrow::RecordBatch> batch;  // destroyed first
};

// Calls use(), which returns a Result. An exception of Arrow or Parquet becomes an error. So does std::bad_alloc,
// because a damaged file may ask for any amount of memory.
template <typename Use>
auto without_exceptions(const std::string& path, const Use& use) -> decltype(use()) {
  try {
    return use();
  } catch (const std::exception& e) {
    return damaged(path, e.what());
  }
}

}  // namespace

class ParquetFile::Reader {
 public:
  Reader(std::string path, const std::vector<WantedColumn>& wanted, ParquetReading reading)
      : path_(std::move(path)),
        wanted_(wanted),
        reading_(std::move(reading)),
        table_records_(std::clamp(kTableBytes / (sizeof(float) * std::max<std::uint64_t>(wanted.size(), 1)),
                                  kMinTableRecords, kMaxTableRecords)) {}

  Status open() {
    Result<std::shared_ptr<InputFile>> file = InputFile::open(path_, reading_.counts);
    if (!file) return tl::unexpected(std::move(file.error()));
    file_ = *file;
    const auto bytes = file_->GetSize();
    if (!bytes.ok()) return damaged(path_, bytes.status().message());
    pool_ = std::make_shared<arrow::CappedMemoryPool>(arrow::default_memory_pool(), most_memory(*bytes));
    parquet::ReaderProperties buffered(pool_.get());
    buffered.enable_buffered_stream();
    buffered.set_buffer_size(kReadBytes);
    parquet::arrow::FileReaderBuilder builder;
    if (const auto opened = builder.Open(file_, buffered, reading_.footer); !opened.ok())
      return damaged(path_, opened.message());
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    properties.set_batch_size(static_cast<std::int64_t>(table_records_));
    properties.set_pre_buffer(false);
    builder.memory_pool(pool_.get())->properties(properties);
    auto reader = builder.Build();
    if (!reader.ok()) return damaged(path_, reader.status().message());
    reader_ = std::move(*reader);
    footer_ = reading_.footer != nullptr ? reading_.footer : with_pool(reader_->parquet_reader()->metadata());
    const auto& metadata = footer_;
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      const std::int64_t records = metadata->RowGroup(group)->num_rows();
      if (records < 0 || static_cast<std::uint64_t>(records) > kMaxRecords)
        return damaged(path_, "a row group of " + std::to_string(records) + " rows");
      groups_.push_back(static_cast<std::uint64_t>(records));
    }
    return find_columns(*metadata->schema());
  }

  const std::string& path() const { return path_; }
  const std::vector<std::uint64_t>& groups() const { return groups_; }
  FileStamp stamp() const { return file_->stamp(); }
  const ParquetFooter& footer() const { return footer_; }
  std::size_t columns() const { return wanted_.size(); }

  bool is_all_null(std::size_t column) const {
    for (std::size_t number = 0; number < groups_.size(); ++number) {
      const auto group = footer_->RowGroup(static_cast<int>(number));
      for (const int leaf : columns_[column].leaves) {
        const auto chunk = group->ColumnChunk(leaf);
        const auto statistics = chunk->statistics();
        const bool is_known = statistics != nullptr && statistics->HasNullCount();
        if (!is_known || statistics->null_count() < chunk->num_values()) return false;
      }
    }
    return true;
  }

  Status start(std::size_t group, std::size_t begin, std::size_t end) {
    DISTTRAIN_CHECK(group < groups_.size());
    DISTTRAIN_CHECK(begin <= end && end <= wanted_.size());
    begin_ = begin;
    end_ = end;
    batches_.reset();
    std::vector<int> leaves;  // the file's columns that Arrow reads
    const auto row_group = reader_->parquet_reader()->RowGroup(static_cast<int>(group));
    next_record_ = 0;
    for (std::size_t before = 0; before < group; ++before) next_record_ += groups_[before];
    group_end_ = next_record_ + groups_[group];
    for (std::size_t c = begin; c < end; ++c) {
      if (Status near = check_timestamps(*row_group, group, c); !near) return near;
      if (columns_[c].plain != nullptr) {
        columns_[c].plain->start(row_group->Column(columns_[c].leaves.front()));
        continue;
      }
      for (const int leaf : columns_[c].leaves)
        if (std::find(leaves.begin(), leaves.end(), leaf) == leaves.end()) leaves.push_back(leaf);
    }
    if (!leaves.empty()) {
      auto batches = reader_->GetRecordBatchReader({static_cast<int>(group)}, leaves);
      if (!batches.ok()) return damaged(path_, batches.status().message());
      batches_ = std::move(*batches);
    }
    return {};
  }

  Result<bool> next(Table& table) {
    start_table(wanted_, table);
    if (next_record_ == group_end_) return false;
    table.records = std::min(table_records_, group_end_ - next_record_);
    std::shared_ptr<arrow::RecordBatch> batch;
    if (batches_ != nullptr) {
      if (const auto read = batches_->ReadNext(&batch); !read.ok()) return damaged(path_, read.message());
      const std::int64_t records = batch == nullptr ? 0 : batch->num_rows();
      if (records <= 0 || static_cast<std::uint64_t>(records) > group_end_ - next_record_)
        return damaged(path_, "a row group has another number of rows than its footer says");
      table.records = static_cast<std::uint64_t>(records);
      for (int i = 0; i < batch->num_columns(); ++i)
        if (const auto valid = check_array(*batch->column(i)); !valid.ok())
          return damaged(path_, "column '" + batch->column_name(i) + "', records " + std::to_string(next_record_) +
                                    " to " + std::to_string(next_record_ + table.records - 1) + ": " + valid.message());
      table.owner = std::make_shared<const Kept>(Kept{pool_, batch});
    }
    for (std::size_t c = begin_; c < end_; ++c) {
      if (columns_[c].plain != nullptr) {
        columns_[c].plain->read(table.records, table.columns[c], table.texts);
        continue;
      }
      const std::shared_ptr<arrow::Array> array = batch->GetColumnByName(wanted_[c].name);
      if (array == nullptr) return damaged(path_, "no column " + wanted_[c].name);
      if (const auto unfit = append_array(*array, wanted_[c], table.columns[c], table.texts))
        return fail(ErrorCode::kData,
                    "data file \"" + path_ + "\", record " +
                        std::to_string(next_record_ + static_cast<std::uint64_t>(*unfit)) + ": " +
                        wrong_value(wanted_[c], arrow::is_list_like(array->type_id()), shown(*array, *unfit)));
    }
    next_record_ += table.records;
    drop_equal_lengths(table);
    return true;
  }

 private:
  // A footer may live longer than the reader. It takes memory from the pool with which it was read.
  ParquetFooter with_pool(std::shared_ptr<parquet::FileMetaData> footer) const {
    struct Both {
      std::shared_ptr<arrow::MemoryPool> pool;
      std::shared_ptr<parquet::FileMetaData> footer;  // destroyed first
    };
    parquet::FileMetaData* const its = footer.get();
    return {std::make_shared<const Both>(Both{pool_, std::move(footer)}), its};
  }

  struct Column {
    std::vector<int> leaves;             // the file's columns that hold it
    std::vector<int> timestamps;         // those of them that have the type INT96
    std::unique_ptr<PlainColumn> plain;  // null: Arrow reads it
  };

  // Looks for timestamps that would wrap.
  Status check_timestamps(parquet::RowGroupReader& row_group, std::size_t group, std::size_t c) const {
    if (columns_[c].timestamps.empty()) return {};
    if (reading_.checked != nullptr && reading_.checked->has(group, c)) return {};
    const InputFile::WithoutBytes uncounted(*file_);
    for (const int leaf : columns_[c].timestamps) {
      const auto far = find_far_timestamp(*row_group.Column(leaf), reading_.is_cancelled);
      if (!far.has_value()) return fail(far.error().code, path_ + ": " + far.error().message);
      if (far->has_value())
        return fail(ErrorCode::kData, "data file \"" + path_ + "\", record " +
                                          std::to_string(next_record_ + (*far)->record) + ": found the timestamp " +
                                          (*far)->day + " of the type INT96 in column '" + wanted_[c].name +
                                          "', expected one from 1677-09-21 to 2262-04-11, because it becomes "
                                          "nanoseconds in 64 bits: correct the record, or write the column as a "
                                          "timestamp of microseconds");
    }
    if (reading_.checked != nullptr) reading_.checked->add(group, c);
    return {};
  }

  static std::string shown(const arrow::Array& array, std::int64_t record) {
    const auto value = array.GetScalar(record);
    return value.ok() ? printable(cut_text((*value)->ToString(), 80)) : "a value";
  }

  static std::string wrong_value(const WantedColumn& wanted, bool is_list, const std::string& found) {
    if (wanted.kind == ValueKind::kFloat && is_list)
      return "found " + found + " in column '" + wanted.name + "', expected finite numbers" +
             (wanted.shape.size() < 2 ? "" : " in " + lists_of_shape(wanted.shape)) +
             ", and no list within it that is null: correct the record";
    if (wanted.kind == ValueKind::kFloat) return wrong_number(found, wanted.name);
    return "found " + found + " in column '" + wanted.name +
           "', expected values that fit into 64 bits, and none that is null: correct the record";
  }

  Status find_columns(const parquet::SchemaDescriptor& descriptor) {
    std::shared_ptr<arrow::Schema> schema;
    if (const auto got = reader_->GetSchema(&schema); !got.ok()) return damaged(path_, got.message());
    for (const WantedColumn& wanted : wanted_) {
      const auto field = schema->GetFieldByName(wanted.name);
      if (field == nullptr) {
        std::string has = std::to_string(schema->num_fields()) + " columns";
        for (int i = 0; i < std::min(schema->num_fields(), 50); ++i)
          has += (i == 0 ? ": " : ", ") + shown_text(schema->field(i)->name());
        return fail(ErrorCode::kData, "data file \"" + path_ + "\" has no column '" + wanted.name +
                                          "', or two of them; it has " + has + ": correct [data.columns] or the file");
      }
      if (const auto unfit = unfit_type(*field->type(), wanted.kind))
        return fail(ErrorCode::kData, "data file \"" + path_ + "\", column '" + wanted.name + "': it " + *unfit +
                                          ": correct the kind in [data.columns], or the file");
      Column& column = columns_.emplace_back();
      for (int leaf = 0; leaf < descriptor.num_columns(); ++leaf)
        if (descriptor.GetColumnRoot(leaf)->name() == wanted.name) column.leaves.push_back(leaf);
      for (const int leaf : column.leaves)
        if (descriptor.Column(leaf)->physical_type() == parquet::Type::INT96) column.timestamps.push_back(leaf);
      if (column.leaves.empty()) return damaged(path_, "no values of the column " + wanted.name);
      if (column.leaves.size() == 1) column.plain = PlainColumn::make(*descriptor.Column(column.leaves.front()));
    }
    return {};
  }

  // Constant after open().
  const std::string path_;
  const std::vector<WantedColumn> wanted_;
  const ParquetReading reading_;
  const std::uint64_t table_records_;
  std::shared_ptr<arrow::CappedMemoryPool> pool_;
  std::shared_ptr<InputFile> file_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  ParquetFooter footer_;
  std::vector<std::uint64_t> groups_;
  // The row group that is read.
  std::vector<Column> columns_;  // those of wanted_
  std::size_t begin_ = 0;        // only the columns [begin_, end_) are read
  std::size_t end_ = 0;
  std::unique_ptr<arrow::RecordBatchReader> batches_;  // null: all these columns are plain
  std::uint64_t next_record_ = 0;                      // number of the first record that next() gives, in the file
  std::uint64_t group_end_ = 0;
};

Result<std::unique_ptr<ParquetFile>> ParquetFile::open(const std::string& path, const std::vector<WantedColumn>& wanted,
                                                       ParquetReading reading) {
  // FileReader gives clear errors for a path that isn't a file.
  const auto file = FileReader::open(path);
  if (!file) return tl::unexpected(file.error());
  return without_exceptions(path, [&]() -> Result<std::unique_ptr<ParquetFile>> {
    auto reader = std::make_unique<Reader>(path, wanted, std::move(reading));
    if (Status opened = reader->open(); !opened) return tl::unexpected(opened.error());
    return std::unique_ptr<ParquetFile>(new ParquetFile(std::move(reader)));
  });
}

ParquetFile::ParquetFile(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
ParquetFile::~ParquetFile() = default;

const std::vector<std::uint64_t>& ParquetFile::groups() const {
  return reader_->groups();
}

const std::string& ParquetFile::path() const {
  return reader_->path();
}

const ParquetFooter& ParquetFile::footer() const {
  return reader_->footer();
}

std::uint64_t ParquetFile::footer_bytes() const {
  return reader_->footer()->size();
}

bool ParquetFile::is_all_null(std::size_t column) const {
  return reader_->is_all_null(column);
}

FileStamp ParquetFile::stamp() const {
  return reader_->stamp();
}

Status ParquetFile::start(std::size_t group, std::size_t begin, std::size_t end) {
  return without_exceptions(reader_->path(), [&] { return reader_->start(group, begin, end); });
}

Status ParquetFile::start(std::size_t group) {
  return start(group, 0, reader_->columns());
}

Result<bool> ParquetFile::next(Table& table) {
  return without_exceptions(reader_->path(), [&] { return reader_->next(table); });
}

}  // namespace disttrain::input
