#include "common/checkpoint/chunk_writer.h"

#include <algorithm>

#include "common/checkpoint/checksum.h"
#include "common/mutant.h"

namespace disttrain::checkpoint {

ChunkWriter::ChunkWriter(OutputFile& file, const IsCancelled& is_cancelled, FileEntry& entry)
    : file_(file), is_cancelled_(is_cancelled), entry_(entry) {
  rest_.reserve(kChunkBytes);
}

Status ChunkWriter::write(Bytes bytes) {
  constexpr std::size_t kChunksAtOnce = 4;
  while (!bytes.empty()) {
    std::size_t count = std::min<std::size_t>(bytes.size() / kChunkBytes, kChunksAtOnce) * kChunkBytes;
    Status put;
    if (rest_.empty() && count > 0) {
      put = put_chunks(bytes.first(count));
    } else {
      count = std::min<std::size_t>(bytes.size(), kChunkBytes - rest_.size());
      rest_.insert(rest_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      if (rest_.size() == kChunkBytes) put = put_rest();
    }
    if (!put) return put;
    bytes = bytes.subspan(count);
  }
  return {};
}

Status ChunkWriter::finish() {
  Status done = rest_.empty() ? Status() : put_rest();
  if (done && !DISTTRAIN_MUTANT(kFilesNotSynced)) done = file_.sync();
  if (done) entry_.checksum = checksum_of(entry_.chunks);
  return done;
}

Status ChunkWriter::put_rest() {
  Status put = put_chunks(rest_);
  rest_.clear();
  return put;
}

Status ChunkWriter::put_chunks(Bytes bytes) {
  if (is_cancelled_ && is_cancelled_()) return fail(ErrorCode::kTemporary, entry_.name + ": writing was cancelled");
  entry_.bytes += bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes)
    entry_.chunks.push_back(checksum_of(bytes.subspan(at, std::min<std::size_t>(kChunkBytes, bytes.size() - at))));
  return file_.append(bytes);
}

}  // namespace disttrain::checkpoint
