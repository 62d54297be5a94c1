// The index of a data set: for each record, the file that holds it and its place there. It is built once, by reading
// all files, and kept in a file: beside the data, or in the folder data.index. Later jobs map this file; they don't
// load it.
//
// The index's file has a header, a table of the data files, and 16 bytes for each record. It is written under a
// temporary name and renamed, so other processes see a whole index or none. It belongs to data files with certain
// names, sizes and times of modification. If one of them differs, a new index is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "workerd/input/record_format.h"

namespace disttrain::input {

struct IndexedFile {
  std::string path;
  std::uint64_t bytes = 0;          // size of the file
  std::int64_t modified_ns = 0;     // time of its last modification, as stat(2) gives it
  std::uint64_t first_record = 0;   // number of its first record in the data set
  std::uint64_t records = 0;        // at least 1
  std::uint64_t content_bytes = 0;  // after decompression
  bool is_packed = false;           // compressed
};

// Where the data of a record is in the content of its file.
struct IndexedPlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct IndexOptions {
  DataFormat format = DataFormat::kTfrecord;
  std::string data_folder;         // begins each path
  std::string index_folder;        // "" = data_folder
  std::vector<std::string> paths;  // sorted
  std::function<bool()> is_cancelled;
};

// Any thread may read it.
class RecordIndex {
 public:
  // Maps the index if it exists and fits the files; otherwise builds it. Errors: those of FileReader and of
  // RecordFormat::find(); kData: a file has no record; kNoInput: data.index can't be written. If the folder of the data
  // can't be written and there is no data.index, the index is kept in a temporary file, and notice() says so.
  static Result<std::unique_ptr<RecordIndex>> open(const IndexOptions& options, const RecordFormat& format);

  ~RecordIndex();
  RecordIndex(const RecordIndex&) = delete;
  RecordIndex& operator=(const RecordIndex&) = delete;

  std::uint64_t records() const { return places_.size(); }
  const std::vector<IndexedFile>& files() const { return files_; }
  // The index in files() of the file that has the record.
  std::size_t file_of(std::uint64_t record) const;
  // Places of damaged indexes may lie beyond the end of the file.
  const IndexedPlace& place(std::uint64_t record) const { return places_[record]; }
  // XXH3 of the names of the files within the data folder, and of all places. Equal indexes have equal hashes, also on
  // different hosts.
  std::uint64_t hash() const { return hash_; }
  bool was_built() const { return was_built_; }  // and not found
  const std::string& notice() const { return notice_; }

  // Divides the records into blocks of consecutive records of one file, with about `block_bytes` of content each; a
  // compressed file is one block. Returns the first record of each block.
  std::vector<std::uint64_t> blocks(std::uint64_t block_bytes) const;

 private:
  RecordIndex() = default;

  void* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::vector<IndexedFile> files_;
  std::span<const IndexedPlace> places_;
  std::uint64_t hash_ = 0;
  bool was_built_ = false;
  std::string notice_;

  friend class IndexFile;
};

}  // namespace disttrain::input
