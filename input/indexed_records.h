// Reads the records of files by their index. The records of a compressed file are one block, which is read from the
// file's begin.
//
// A file may be changed after it was indexed without another size or time of modification, and the index may have only
// a sample of it. The places of the records would then be wrong. In the formats tfrecord and webdataset the checksums
// of records and members show that. Lines have none, so a reader finds the records in the bytes that it reads again,
// which takes less time than to decode them, and compares their places.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "input/record_files.h"
#include "input/record_format.h"
#include "input/record_index.h"
#include "input/record_source.h"

namespace disttrain::input {

class IndexedRecords final : public RecordSource {
 public:
  // Finds the index of these files of the source, or builds it. Errors: those of RecordIndex::open() and
  // RecordFormat::prepare().
  static Result<std::unique_ptr<RecordSource>> open(const Source& source, const std::vector<std::string>& paths);

  IndexedRecords(std::unique_ptr<RecordIndex> index, std::unique_ptr<RecordFormat> format, std::uint64_t max_expansion);

  std::uint64_t records() const override { return index_->records(); }
  std::uint64_t hash() const override { return index_->hash(); }
  std::string notice() const override { return index_->notice(); }
  std::string place_of(std::uint64_t record) const override;
  std::uint64_t end_of_file(std::uint64_t record) const override;
  std::vector<std::uint64_t> blocks() const override { return index_->blocks(); }
  Result<std::uint64_t> content_bytes(std::uint64_t first, std::uint64_t count) const override;
  std::string needs_blocks() const override;
  std::string smaller_blocks() const override;
  std::unique_ptr<RecordReader> make_reader(const ColumnEncoder& encoder, DataFigures& figures) const override;

 private:
  class Reader;

  const std::unique_ptr<RecordIndex> index_;
  const std::unique_ptr<RecordFormat> format_;
  const std::uint64_t max_expansion_;
  const RecordFiles files_;
  bool has_packed_ = false;
};

}  // namespace disttrain::input
