// Counts what is read of a Parquet file, and says by which stamp a change of the file is noticed.
#pragma once

#include <atomic>
#include <cstdint>

namespace disttrain::input {

// A file that is changed has another size or time of modification.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

// Counts of the time and the bytes of all reads. They may be null, and must outlive the file.
struct ReadCounts {
  std::atomic<std::uint64_t>* read_ns = nullptr;
  std::atomic<std::uint64_t>* bytes_read = nullptr;
};

}  // namespace disttrain::input
