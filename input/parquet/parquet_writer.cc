#include "input/parquet/parquet_writer.h"

#include <arrow/array/array_primitive.h>
#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "common/check.h"

namespace disttrain::input {

namespace {

constexpr std::size_t kGroupBytes = std::size_t{16} << 20;

tl::unexpected<Error> cant_write(const std::string& path, const std::string& why) {
  return fail(ErrorCode::kFailed, "can't write " + path + " (Arrow: " + why +
                                      "); check the folder's permissions and the space on its disk");
}

// Calls write(), which returns an arrow::Status. An exception of Arrow or Parquet becomes an error.
template <typename Write>
Status written(const std::string& path, const Write& write) {
  try {
    const arrow::Status status = write();
    return status.ok() ? Status() : cant_write(path, status.message());
  } catch (const std::exception& e) {
    return cant_write(path, e.what());
  }
}

}  // namespace

class ParquetWriter::Writer {
 public:
  Writer(std::string path, const std::vector<std::string>& columns) : path_(std::move(path)), values_(columns.size()) {
    arrow::FieldVector fields;
    for (const std::string& name : columns) fields.push_back(arrow::field(name, arrow::float32(), /*nullable=*/false));
    schema_ = arrow::schema(std::move(fields));
  }

  const std::string& path() const { return path_; }

  arrow::Status open() {
    ARROW_ASSIGN_OR_RAISE(file_, arrow::io::FileOutputStream::Open(path_));
    // Outputs of a model hardly repeat, so a dictionary would only cost time.
    const auto properties =
        parquet::WriterProperties::Builder().disable_dictionary()->compression(arrow::Compression::SNAPPY)->build();
    ARROW_ASSIGN_OR_RAISE(writer_,
                          parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), file_, properties));
    return arrow::Status::OK();
  }

  arrow::Status add(std::span<const float> rows) {
    const std::size_t columns = values_.size();
    DISTTRAIN_CHECK_EQ(rows.size() % columns, 0u);
    for (std::size_t at = 0; at < rows.size(); at += columns)
      for (std::size_t c = 0; c < columns; ++c) values_[c].push_back(rows[at + c]);
    return values_.front().size() * columns * sizeof(float) >= kGroupBytes ? write_group() : arrow::Status::OK();
  }

  arrow::Status finish() {
    if (!values_.front().empty()) ARROW_RETURN_NOT_OK(write_group());
    ARROW_RETURN_NOT_OK(writer_->Close());
    return file_->Close();
  }

 private:
  arrow::Status write_group() {
    const auto rows = static_cast<std::int64_t>(values_.front().size());
    arrow::ArrayVector arrays;
    for (const std::vector<float>& column : values_)
      arrays.push_back(std::make_shared<arrow::FloatArray>(rows, arrow::Buffer::Wrap(column)));
    ARROW_RETURN_NOT_OK(writer_->WriteTable(*arrow::Table::Make(schema_, std::move(arrays), rows), rows));
    for (std::vector<float>& column : values_) column.clear();
    return arrow::Status::OK();
  }

  const std::string path_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::io::FileOutputStream> file_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  std::vector<std::vector<float>> values_;  // of each column, those of the next row group
};

Result<std::unique_ptr<ParquetWriter>> ParquetWriter::create(const std::string& path,
                                                             const std::vector<std::string>& columns) {
  DISTTRAIN_CHECK(!columns.empty());
  auto writer = std::make_unique<Writer>(path, columns);
  if (Status ok = written(path, [&] { return writer->open(); }); !ok) return tl::unexpected(std::move(ok.error()));
  return std::unique_ptr<ParquetWriter>(new ParquetWriter(std::move(writer)));
}

ParquetWriter::ParquetWriter(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}
ParquetWriter::~ParquetWriter() = default;

Status ParquetWriter::add(std::span<const float> rows) {
  return written(writer_->path(), [&] { return writer_->add(rows); });
}

Status ParquetWriter::finish() {
  return written(writer_->path(), [&] { return writer_->finish(); });
}

}  // namespace disttrain::input
