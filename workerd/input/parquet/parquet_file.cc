#include "workerd/input/parquet/parquet_file.h"

#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "common/check.h"
#include "workerd/input/file_reader.h"
#include "workerd/input/parquet/arrow_column.h"

namespace disttrain::input {

namespace {

tl::unexpected<Error> damaged(const std::string& path, const std::string& why) {
  return fail(ErrorCode::kData, "data file \"" + path + "\" can't be read as a Parquet file (Arrow: " + why +
                                    "); copy the file again, and check data.format");
}

// A table may live longer than the reader. A batch frees its memory into the pool.
struct Kept {
  std::shared_ptr<arrow::MemoryPool> pool;
  std::shared_ptr<arrow::RecordBatch> batch;  // destroyed first
};

// Calls use(), which returns a Result. An exception of Arrow or Parquet becomes an error.
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
  Reader(std::string path, const std::vector<WantedColumn>& wanted)
      : path_(std::move(path)),
        wanted_(wanted),
        pool_(std::make_shared<arrow::CappedMemoryPool>(arrow::default_memory_pool(), kMaxParquetBytes)) {}

  Status open() {
    auto file = arrow::io::ReadableFile::Open(path_);
    if (!file.ok()) return damaged(path_, file.status().message());
    parquet::arrow::FileReaderBuilder builder;
    if (const auto opened = builder.Open(*file, parquet::ReaderProperties(pool_.get())); !opened.ok())
      return damaged(path_, opened.message());
    parquet::ArrowReaderProperties properties;
    properties.set_batch_size(kParquetBatchRecords);
    builder.memory_pool(pool_.get())->properties(properties);
    auto reader = builder.Build();
    if (!reader.ok()) return damaged(path_, reader.status().message());
    reader_ = std::move(*reader);
    const auto metadata = reader_->parquet_reader()->metadata();
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      const std::int64_t records = metadata->RowGroup(group)->num_rows();
      if (records < 0) return damaged(path_, "a row group of a negative number of rows");
      groups_.push_back(static_cast<std::uint64_t>(records));
    }
    return find_columns(*metadata->schema());
  }

  const std::string& path() const { return path_; }
  const std::vector<std::uint64_t>& groups() const { return groups_; }

  Status start(std::size_t group) {
    DISTTRAIN_CHECK(group < groups_.size());
    batches_.reset();
    auto batches = reader_->GetRecordBatchReader({static_cast<int>(group)}, leaves_);
    if (!batches.ok()) return damaged(path_, batches.status().message());
    batches_ = std::move(*batches);
    next_record_ = 0;
    for (std::size_t before = 0; before < group; ++before) next_record_ += groups_[before];
    group_end_ = next_record_ + groups_[group];
    return {};
  }

  Result<bool> next(Table& table) {
    DISTTRAIN_CHECK(batches_ != nullptr);
    start_table(wanted_, table);
    std::shared_ptr<arrow::RecordBatch> batch;
    if (const auto read = batches_->ReadNext(&batch); !read.ok()) return damaged(path_, read.message());
    if (batch == nullptr) {
      if (next_record_ != group_end_) return damaged(path_, "a row group has fewer rows than its footer says");
      return false;
    }
    if (const auto valid = batch->ValidateFull(); !valid.ok()) return damaged(path_, valid.message());
    table.owner = std::make_shared<const Kept>(Kept{pool_, batch});
    table.records = static_cast<std::uint64_t>(batch->num_rows());
    for (std::size_t c = 0; c < wanted_.size(); ++c) {
      const std::shared_ptr<arrow::Array> array = batch->GetColumnByName(wanted_[c].name);
      if (array == nullptr) return damaged(path_, "no column " + wanted_[c].name);
      if (const auto record = append_array(*array, table.columns[c], table.texts)) {
        return fail(ErrorCode::kData, "data file \"" + path_ + "\", record " +
                                          std::to_string(next_record_ + static_cast<std::uint64_t>(*record)) +
                                          ", column '" + wanted_[c].name + "': found " + shown(*array, *record) +
                                          ", expected a finite number that fits, or a value instead of null");
      }
    }
    next_record_ += table.records;
    drop_equal_lengths(table);
    return true;
  }

 private:
  static std::string shown(const arrow::Array& array, std::int64_t record) {
    const auto value = array.GetScalar(record);
    return value.ok() ? (*value)->ToString().substr(0, 80) : "a value";
  }

  Status find_columns(const parquet::SchemaDescriptor& descriptor) {
    std::shared_ptr<arrow::Schema> schema;
    if (const auto got = reader_->GetSchema(&schema); !got.ok()) return damaged(path_, got.message());
    for (const WantedColumn& wanted : wanted_) {
      const auto field = schema->GetFieldByName(wanted.name);
      if (field == nullptr) {
        std::string has = std::to_string(schema->num_fields()) + " columns";
        for (int i = 0; i < std::min(schema->num_fields(), 50); ++i)
          has += (i == 0 ? ": '" : ", '") + schema->field(i)->name() + "'";
        return fail(ErrorCode::kData, "data file \"" + path_ + "\" has no column '" + wanted.name +
                                          "', or two of them; it has " + has + ": correct [data.columns] or the file");
      }
      if (const auto unfit = unfit_type(*field->type(), wanted.kind))
        return fail(ErrorCode::kData, "data file \"" + path_ + "\", column '" + wanted.name + "': it " + *unfit +
                                          ": correct the kind in [data.columns], or the file");
      for (int leaf = 0; leaf < descriptor.num_columns(); ++leaf)
        if (descriptor.GetColumnRoot(leaf)->name() == wanted.name &&
            std::find(leaves_.begin(), leaves_.end(), leaf) == leaves_.end())
          leaves_.push_back(leaf);
    }
    return {};
  }

  const std::string path_;
  const std::vector<WantedColumn> wanted_;
  const std::shared_ptr<arrow::CappedMemoryPool> pool_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<std::uint64_t> groups_;
  std::vector<int> leaves_;  // the file's columns that hold the wanted ones
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::uint64_t next_record_ = 0;  // number of the first record that next() gives, in the file
  std::uint64_t group_end_ = 0;
};

Result<std::unique_ptr<ParquetFile>> ParquetFile::open(const std::string& path,
                                                       const std::vector<WantedColumn>& wanted) {
  // FileReader gives clear errors for a path that isn't a file.
  const auto file = FileReader::open(path);
  if (!file) return tl::unexpected(file.error());
  return without_exceptions(path, [&]() -> Result<std::unique_ptr<ParquetFile>> {
    auto reader = std::make_unique<Reader>(path, wanted);
    if (Status opened = reader->open(); !opened) return tl::unexpected(opened.error());
    return std::unique_ptr<ParquetFile>(new ParquetFile(std::move(reader)));
  });
}

ParquetFile::ParquetFile(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
ParquetFile::~ParquetFile() = default;

const std::vector<std::uint64_t>& ParquetFile::groups() const {
  return reader_->groups();
}

Status ParquetFile::start(std::size_t group) {
  return without_exceptions(reader_->path(), [this, group] { return reader_->start(group); });
}

Result<bool> ParquetFile::next(Table& table) {
  return without_exceptions(reader_->path(), [this, &table] { return reader_->next(table); });
}

}  // namespace disttrain::input
