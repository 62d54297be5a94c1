// Reads any range of a checkpoint's file and verifies each chunk it reads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/manifest.h"

namespace disttrain::checkpoint {

// Keeps the last chunk that was only partly wanted, so that adjacent ranges read it once. It needs no other memory. One
// thread at a time.
class VerifiedFile {
 public:
  // `entry` outlives the file. kData: the file's size isn't the entry's.
  static Result<VerifiedFile> open(Files& files, const std::string& folder, const FileEntry& entry,
                                   const IsCancelled& is_cancelled = {});

  // Fills `out` from `offset` on; the range is within the entry's bytes. kData: a chunk differs from what was written.
  // kTemporary: it was cancelled.
  Status read(std::uint64_t offset, MutableBytes out);

 private:
  VerifiedFile(std::string path, std::unique_ptr<InputFile> file, const FileEntry& entry, IsCancelled is_cancelled);
  Status load(std::uint64_t chunk, MutableBytes out);

  std::string path_;
  std::unique_ptr<InputFile> file_;
  const FileEntry* entry_;
  IsCancelled is_cancelled_;
  std::uint64_t held_ = 0;         // number of the chunk in the buffer
  std::vector<std::byte> buffer_;  // empty: none
};

}  // namespace disttrain::checkpoint
