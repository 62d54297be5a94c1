// Each format has two functions. find() finds the places of the records in a block of bytes, and looks only at what
// separates them: line ends, quotes, lengths, headers. decode() takes the records at given places, and only the columns
// that the job uses. So an index needs no decoding, records can be read in any order, and several threads can decode
// one block. Finding in a csv file is sequential, because of line ends in quotes. It takes a tenth of the time of
// decoding: quotes and line ends are found 64 bytes at a time.
#include "input/record_format.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "common/check.h"
#include "input/column_values.h"
#include "input/columns.h"
#include "input/csv_rows.h"
#include "input/file_reader.h"
#include "input/jsonl.h"
#include "input/libsvm.h"
#include "input/lines.h"
#include "input/tar_samples.h"
#include "input/tfrecord.h"

namespace disttrain::input {

namespace {

class TfRecordFormat final : public RecordFormat {
 public:
  explicit TfRecordFormat(std::vector<WantedColumn> wanted) : wanted_(std::move(wanted)) {}

  Status prepare(const std::string&) override { return {}; }
  Result<std::size_t> find(const RecordBlock& block, std::vector<RecordPlace>& records) const override {
    return find_tfrecords(block, records);
  }
  Status decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table) const override {
    return decode_examples(block, records, wanted_, table);
  }
  std::size_t most_record_bytes() const override { return kMaxTfRecordBytes + 16; }
  std::size_t tail_bytes() const override { return 4; }  // the checksum

 private:
  const std::vector<WantedColumn> wanted_;
};

// All files have the same header.
class CsvFormat final : public RecordFormat {
 public:
  CsvFormat(std::vector<WantedColumn> wanted, const FormatOptions& options)
      : wanted_(std::move(wanted)),
        has_header_(has_header_line(options.columns)),
        max_expansion_(options.max_expansion),
        is_cancelled_(options.is_cancelled) {}

  Status prepare(const std::string& first_path) override {
    const Result<std::unique_ptr<FileReader>> file = FileReader::open(first_path, is_cancelled_, max_expansion_);
    if (!file) return tl::unexpected(file.error());
    std::vector<std::byte> bytes;
    for (;;) {
      const std::size_t old = bytes.size();
      bytes.resize(std::max<std::size_t>(1 << 16, 2 * old));
      const Result<std::size_t> got = (*file)->read(std::span(bytes).subspan(old));
      if (!got) return tl::unexpected(got.error());
      const bool has_ended = old + *got < bytes.size();
      bytes.resize(old + *got);
      const RecordBlock block{.path = first_path, .first_line = 1, .is_last = has_ended, .bytes = bytes};
      Result<std::optional<CsvHeader>> header = read_csv_header(block, wanted_, has_header_);
      if (!header.has_value()) return tl::unexpected(header.error());
      if (!header->has_value() && !has_ended) continue;
      if (header->has_value()) header_ = **header;
      return {};
    }
  }

  Result<std::size_t> find(const RecordBlock& block, std::vector<RecordPlace>& records) const override {
    if (block.offset > 0) return find_csv_rows(block, records);
    records.clear();
    RecordBlock begin = block;
    begin.first_line = 1;
    const Result<std::optional<CsvHeader>> header = read_csv_header(begin, wanted_, has_header_);
    if (!header.has_value()) return tl::unexpected(header.error());
    if (!header->has_value()) return std::size_t{0};
    const CsvHeader& found = **header;
    if (found.fields == 0) return found.bytes;  // blank lines alone; the caller refuses a file without records
    if (found.fields != header_.fields || found.columns != header_.columns)
      return fail(ErrorCode::kData, std::string(block.path) + ":" + std::to_string(found.line) +
                                        ": the header has other columns or another order than that of the first file: "
                                        "all files of a data set must be alike");
    RecordBlock rows = block;
    rows.offset += found.bytes;
    rows.first_line = found.rows_line;
    rows.bytes = block.bytes.subspan(found.bytes);
    Result<std::size_t> covered = find_csv_rows(rows, records);
    if (!covered) return covered;
    for (RecordPlace& place : records) place.begin += found.bytes;
    return *covered + found.bytes;
  }

  Status decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table) const override {
    return decode_csv_rows(block, records, header_, wanted_, table);
  }
  bool has_lines() const override { return true; }
  std::size_t most_record_bytes() const override { return kMostCsvHeaderBytes; }
  std::size_t tail_bytes() const override { return 0; }

 private:
  const std::vector<WantedColumn> wanted_;
  const bool has_header_;
  const std::uint64_t max_expansion_;
  const IsCancelled is_cancelled_;
  CsvHeader header_;
};

class LineFormat : public RecordFormat {
 public:
  Status prepare(const std::string&) override { return {}; }
  Result<std::size_t> find(const RecordBlock& block, std::vector<RecordPlace>& records) const override {
    return find_lines(block, records);
  }
  bool has_lines() const override { return true; }
  std::size_t most_record_bytes() const override { return kMaxLineBytes + 2; }
  std::size_t tail_bytes() const override { return 0; }
};

class LibsvmFormat final : public LineFormat {
 public:
  LibsvmFormat(std::vector<WantedColumn> wanted, LibsvmShape shape) : wanted_(std::move(wanted)), shape_(shape) {}

  Result<std::size_t> find(const RecordBlock& block, std::vector<RecordPlace>& records) const override {
    return find_libsvm_lines(block, records);
  }
  Status decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table) const override {
    return decode_libsvm(block, records, wanted_, shape_, table);
  }

 private:
  const std::vector<WantedColumn> wanted_;
  const LibsvmShape shape_;
};

// The column "features" has the width of the vectors. A column that isn't wanted now still says what the lines have.
LibsvmShape libsvm_shape(const FormatOptions& options) {
  LibsvmShape shape{.may_lack_label = options.may_lack_labels};
  for (const ColumnSection& column : options.columns) {
    const std::string& name = name_in_files(column);
    if (name == "weight") shape.has_weights = true;
    if (name != "features") continue;
    shape.width = static_cast<std::uint32_t>(value_count(column));
    shape.one_based = !column.zero_based;
  }
  return shape;
}

// Each thread needs a decoder of its own.
class JsonlFormat final : public LineFormat {
 public:
  explicit JsonlFormat(std::vector<WantedColumn> wanted) : wanted_(std::move(wanted)) {}

  Status decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table) const override {
    std::unique_ptr<JsonlDecoder> decoder;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        decoder = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!decoder) decoder = std::make_unique<JsonlDecoder>(wanted_);
    Status decoded = decoder->decode(block, records, table);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(decoder));
    return decoded;
  }

 private:
  const std::vector<WantedColumn> wanted_;
  mutable std::mutex mutex_;  // guards free_
  mutable std::vector<std::unique_ptr<JsonlDecoder>> free_;
};

class WebdatasetFormat final : public RecordFormat {
 public:
  explicit WebdatasetFormat(std::vector<WantedColumn> wanted) : wanted_(std::move(wanted)) {}

  Status prepare(const std::string&) override { return {}; }
  Result<std::size_t> find(const RecordBlock& block, std::vector<RecordPlace>& records) const override {
    return find_tar_samples(block, records);
  }
  Status decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table) const override {
    return decode_tar_samples(block, records, wanted_, table);
  }
  std::size_t most_record_bytes() const override { return kMaxSampleBytes; }
  std::size_t tail_bytes() const override { return 0; }

 private:
  const std::vector<WantedColumn> wanted_;
};

// Each file is a record. The column "image" is the file's content, and "class" is the name of its folder.
class ImagesFormat final : public RecordFormat {
 public:
  explicit ImagesFormat(std::vector<WantedColumn> wanted) : wanted_(std::move(wanted)) {}

  Status prepare(const std::string&) override { return {}; }
  Result<std::size_t> find(const RecordBlock& block, std::vector<RecordPlace>& records) const override {
    records.clear();
    if (!block.is_last || block.bytes.empty()) return std::size_t{0};
    records.push_back({0, block.bytes.size()});
    return block.bytes.size();
  }
  Status decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table) const override {
    start_table(wanted_, table);
    table.records = records.size();
    for (std::size_t c = 0; c < wanted_.size(); ++c)
      for (const RecordPlace& place : records)
        table.columns[c].bytes.push_back(wanted_[c].name == "class" ? folder_of(block.path) : text_at(block, place));
    return {};
  }
  bool is_file_record() const override { return true; }
  std::size_t most_record_bytes() const override { return std::size_t{1} << 30; }
  std::size_t tail_bytes() const override { return 0; }

 private:
  static std::string_view folder_of(std::string_view path) {
    const std::string_view folder = path.substr(0, path.rfind('/'));
    return folder.substr(folder.rfind('/') + 1);
  }

  const std::vector<WantedColumn> wanted_;
};

}  // namespace

FormatOptions format_options(const Source& source) {
  return {.format = source.format,
          .columns = source.columns,
          .missing = source.missing,
          .may_lack_labels = source.may_lack_labels,
          .max_expansion = source.max_expansion,
          .is_cancelled = source.is_cancelled};
}

bool has_header_line(const std::vector<ColumnSection>& columns) {
  return std::any_of(columns.begin(), columns.end(), [](const ColumnSection& column) {
    return column.cross.empty() && !is_csv_column_number(name_in_files(column));
  });
}

std::unique_ptr<RecordFormat> make_record_format(const FormatOptions& options) {
  const std::vector<WantedColumn> wanted = wanted_columns(options.columns, options.missing);
  switch (options.format) {
    case DataFormat::kCsv:
      return std::make_unique<CsvFormat>(wanted, options);
    case DataFormat::kTfrecord:
      return std::make_unique<TfRecordFormat>(wanted);
    case DataFormat::kLibsvm:
      return std::make_unique<LibsvmFormat>(wanted, libsvm_shape(options));
    case DataFormat::kJsonl:
      return std::make_unique<JsonlFormat>(wanted);
    case DataFormat::kWebdataset:
      return std::make_unique<WebdatasetFormat>(wanted);
    case DataFormat::kImages:
      return std::make_unique<ImagesFormat>(wanted);
    case DataFormat::kIdx:
    case DataFormat::kNpy:
    case DataFormat::kNpz:
    case DataFormat::kText:
    case DataFormat::kParquet:
      break;
  }
  DISTTRAIN_CHECK(false);
}

}  // namespace disttrain::input
