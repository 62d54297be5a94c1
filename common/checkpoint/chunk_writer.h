// Writes a file of a checkpoint, and computes the checksums that the manifest lists for it.
#pragma once

#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/manifest.h"

namespace disttrain::checkpoint {

// Cuts the data into chunks and adds their checksums to `entry`. Whole chunks are written directly from the caller's
// memory, up to four in one write. All three arguments must outlive the writer.
class ChunkWriter {
 public:
  ChunkWriter(OutputFile& file, const IsCancelled& is_cancelled, FileEntry& entry);

  Status write(Bytes bytes);
  // Writes the last chunk, syncs the file and computes entry.checksum.
  Status finish();

 private:
  Status put_rest();
  Status put_chunks(Bytes bytes);

  OutputFile& file_;
  const IsCancelled& is_cancelled_;
  FileEntry& entry_;
  std::vector<std::byte> rest_;
};

}  // namespace disttrain::checkpoint
