// Reads any range of a checkpoint's file and verifies each chunk that it reads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/manifest.h"

namespace disttrain::checkpoint {

// Reads a file in whole chunks. If a read needs only a part of a chunk, the object keeps that chunk, so that the next
// read of an adjacent range doesn't read it again. It needs no other memory. Use it from one thread at a time.
class VerifiedFile {
 public:
  // `entry` must outlive the result. Fails with kData if the file is missing or doesn't have the size that `entry`
  // says.
  static Result<VerifiedFile> open(Files& files, const std::string& folder, const FileEntry& entry,
                                   const IsCancelled& is_cancelled = {});

  // Fills `out` with the bytes from `offset` on. The range must lie within the file. Fails with kData if a chunk's
  // checksum is wrong, and with kTemporary if it was cancelled.
  Status read(std::uint64_t offset, MutableBytes out);

 private:
  VerifiedFile(std::string path, std::unique_ptr<InputFile> file, const FileEntry& entry, IsCancelled is_cancelled);
  Status load(std::uint64_t chunk, MutableBytes out);

  std::string path_;
  std::unique_ptr<InputFile> file_;
  const FileEntry* entry_;
  IsCancelled is_cancelled_;
  std::uint64_t held_ = 0;         // number of the chunk that the buffer holds
  std::vector<std::byte> buffer_;  // empty: none
};

}  // namespace disttrain::checkpoint
