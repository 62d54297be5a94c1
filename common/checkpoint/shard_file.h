// Writes the file of one shard from the copy that a checkpoint's cut made. Reads checkpoint files into a shard of any
// layout.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/manifest.h"
#include "common/layout.h"

namespace disttrain::checkpoint {

// The content of a shard: its parameters in the layout's order, and each slot in the same order. All spans have the
// shard's number of words (common/layout.h).
struct ShardContent {
  std::span<const float> parameters;
  std::vector<std::span<const float>> slots;
};

// Writes <folder>/shard-i-of-N.safetensors. reserve() takes the disk space before the content exists, so that a full
// disk is noticed before the training waits for the checkpoint.
class ShardWriter {
 public:
  // The layout must outlive the writer.
  static Result<ShardWriter> reserve(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                                     std::uint32_t slots, const std::map<std::string, std::string>& metadata);

  // Writes and syncs the file. Call it once. The file's name survives a crash only after a sync of the folder. Uses
  // memory for one chunk.
  Result<FileEntry> write(const ShardContent& content, const IsCancelled& is_cancelled = {});

 private:
  ShardWriter(std::unique_ptr<OutputFile> file, std::string header, FileEntry entry, std::uint64_t words,
              std::uint32_t slots)
      : file_(std::move(file)), header_(std::move(header)), entry_(std::move(entry)), words_(words), slots_(slots) {}

  std::unique_ptr<OutputFile> file_;
  std::string header_;
  FileEntry entry_;
  std::uint64_t words_ = 0;
  std::uint32_t slots_ = 0;
};

// reserve() and write() in one call.
Result<FileEntry> write_shard(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                              const ShardContent& content, const std::map<std::string, std::string>& metadata,
                              const IsCancelled& is_cancelled = {});

// Fills one shard of `target` from the checkpoint in `folder`, and verifies the bytes that it reads. The checkpoint may
// have been written with another layout. `parameters` has shard_words(target, shard) words. `slots` has
// manifest.slots spans of the same size, or is empty if only parameters are wanted. Fails with kConfig if the
// checkpoint's variables differ from those of `target`, with kData if a file is damaged (the spans then have undefined
// content), and with kTemporary if it was cancelled.
Status read_shard(Files& files, const std::string& folder, const Manifest& manifest, const Layout& target,
                  ShardId shard, std::span<float> parameters, std::span<const std::span<float>> slots,
                  const IsCancelled& is_cancelled = {});

// Verifies every chunk of a file. Fails with kData if the file is missing, or its size or a checksum is wrong.
Status verify_file(Files& files, const std::string& folder, const FileEntry& entry,
                   const IsCancelled& is_cancelled = {});

// Verifies all files of a checkpoint and returns the first error.
Status verify_files(Files& files, const std::string& folder, const Manifest& manifest,
                    const IsCancelled& is_cancelled = {});

}  // namespace disttrain::checkpoint
