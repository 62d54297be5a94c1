// The index of a data set: for each record, the file that holds it and its place there. It is built once, by reading
// all files, and kept in a file: beside the data, or in the folder data.index. Later jobs read the places of records
// from this file when they need them; they don't load it. They don't map it either, because a file that is cut while it
// is mapped ends the process.
//
// The index's file has a header, a table of the data files, and 16 bytes for each record. It is written under a
// temporary name and renamed, so other processes see a whole index or none. Its checksum covers all of it and is
// compared when a job opens it, which reads it once (100 million records: 1.6 GB). It belongs to data files with
// certain names, sizes, times of modification and contents. If one of them differs, or the format, or whether csv files
// have a header, a new index is built. To compare all contents would take as long as to build the index. So only
// kMostHashedBytes of whole files are compared, and of larger files a sample: 4 KiB at the begin, in the middle and at
// the end. Of more than kMostSampled files, only so many are compared. If another change keeps the size and the time of
// a file, the readers of records find it (indexed_records.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "input/decompressor.h"
#include "input/record_format.h"

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
  bool has_header = false;                      // csv: the first line isn't a record
  std::string data_folder;                      // begins each path
  std::string index_folder;                     // "" = data_folder
  std::vector<std::string> paths;               // sorted
  std::uint64_t block_bytes = 0;                // for RecordIndex::blocks(); 0: each file is one block
  std::uint64_t max_expansion = kMaxExpansion;  // of compressed files
  std::function<bool()> is_cancelled;
};

inline constexpr std::size_t kMostSampled = 1000;                           // files
inline constexpr std::uint64_t kMostHashedBytes = std::uint64_t{64} << 20;  // of all files together

// Any thread may read it.
class RecordIndex {
 public:
  // Opens the index if it exists, fits the files and is undamaged; otherwise builds it. Errors: those of FileReader and
  // of RecordFormat::find(); kData: a file has no record; kNoInput: data.index can't be written. If the folder of the
  // data can't be written and there is no data.index, the index is kept in a temporary file, and notice() says so.
  static Result<std::unique_ptr<RecordIndex>> open(const IndexOptions& options, const RecordFormat& format);

  std::uint64_t records() const { return records_; }
  const std::vector<IndexedFile>& files() const { return files_; }
  // The index in files() of the file that has the record.
  std::size_t file_of(std::uint64_t record) const;
  // Reads the places of the records [first, first + count) into `places`. Errors, kData: the file of the index was
  // changed since it was opened. If that came at the same moment, places may lie beyond the end of their file.
  Status read(std::uint64_t first, std::uint64_t count, std::vector<IndexedPlace>& places) const;
  // XXH3 of the names of the files within the data folder, and of all places. Equal indexes have equal hashes, also on
  // different hosts.
  std::uint64_t hash() const { return hash_; }
  bool was_built() const { return was_built_; }  // and not found
  const std::string& notice() const { return notice_; }

  // Divides the records into blocks of consecutive records of one file, with about IndexOptions::block_bytes of content
  // each; a compressed file is one block. Returns the first record of each block.
  const std::vector<std::uint64_t>& blocks() const { return blocks_; }

 private:
  RecordIndex() = default;

  std::string path_;
  Descriptor file_;
  std::uint64_t file_bytes_ = 0;  // of the index, and
  std::int64_t modified_ns_ = 0;  // the time of its last modification, when it was opened
  std::uint64_t places_at_ = 0;   // in the file
  std::uint64_t records_ = 0;
  std::vector<IndexedFile> files_;
  std::vector<std::uint64_t> blocks_;
  std::uint64_t hash_ = 0;
  bool was_built_ = false;
  std::string notice_;

  friend class IndexFile;
};

}  // namespace disttrain::input
