// Reads any range of a checkpoint's file, in chunks that are verified.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/manifest.h"

namespace disttrain::checkpoint {

// The last chunk that wasn't wanted whole is kept: ranges that follow each other read it once. That is all the memory
// it takes. One thread at a time.
class VerifiedFile {
 public:
  // `entry` stays with the caller, and outlives the file. kData: the file hasn't the size that the entry says.
  static Result<VerifiedFile> open(Files& files, const std::string& folder, const FileEntry& entry,
                                   const IsCancelled& is_cancelled = {});

  // Fills `out` from that byte of the file on; the range is within the entry's bytes. kData: a chunk of it isn't what
  // was written. kTemporary: it was cancelled.
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
