#include "common/checkpoint/verified_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/checkpoint/checksum.h"
#include "common/mutant.h"

namespace disttrain::checkpoint {

VerifiedFile::VerifiedFile(std::string path, std::unique_ptr<InputFile> file, const FileEntry& entry,
                           IsCancelled is_cancelled)
    : path_(std::move(path)), file_(std::move(file)), entry_(&entry), is_cancelled_(std::move(is_cancelled)) {}

Result<VerifiedFile> VerifiedFile::open(Files& files, const std::string& folder, const FileEntry& entry,
                                        const IsCancelled& is_cancelled) {
  const std::string path = folder + "/" + entry.name;
  Result<std::unique_ptr<InputFile>> file = files.open(path);
  if (!file && file.error().code == ErrorCode::kNoInput)
    return fail(ErrorCode::kData, path + " is missing, although the manifest lists it: the checkpoint is damaged");
  if (!file) return tl::unexpected(file.error());
  if ((*file)->size() != entry.bytes)
    return fail(ErrorCode::kData, path + " has " + std::to_string((*file)->size()) + " bytes; the manifest says " +
                                      std::to_string(entry.bytes) + ": the file is damaged");
  return VerifiedFile(path, std::move(*file), entry, is_cancelled);
}

Status VerifiedFile::read(std::uint64_t offset, MutableBytes out) {
  while (!out.empty()) {
    const std::uint64_t chunk = offset / kChunkBytes;
    const std::uint64_t begin = chunk * kChunkBytes;
    const std::uint64_t size = std::min(kChunkBytes, entry_->bytes - begin);
    const std::uint64_t count = std::min<std::uint64_t>(out.size(), begin + size - offset);
    if (count == size) {
      if (Status loaded = load(chunk, out.first(size)); !loaded) return loaded;
    } else {
      if (held_ != chunk || buffer_.empty()) {
        buffer_.resize(size);
        held_ = chunk;
        if (Status loaded = load(chunk, buffer_); !loaded) {
          buffer_.clear();
          return loaded;
        }
      }
      std::memcpy(out.data(), buffer_.data() + (offset - begin), count);
    }
    offset += count;
    out = out.subspan(count);
  }
  return {};
}

Status VerifiedFile::load(std::uint64_t chunk, MutableBytes out) {
  if (is_cancelled_ && is_cancelled_()) return fail(ErrorCode::kTemporary, path_ + ": reading it was cancelled");
  if (Status read = file_->read_at(chunk * kChunkBytes, out); !read) return read;
  if (checksum_of(Bytes(out)) == entry_->chunks[chunk] || DISTTRAIN_MUTANT(kDamageUnseen)) return {};
  return fail(ErrorCode::kData, path_ + ": the chunk at byte " + std::to_string(chunk * kChunkBytes) +
                                    " changed after it was written (its XXH3 differs): the file is damaged");
}

}  // namespace disttrain::checkpoint
