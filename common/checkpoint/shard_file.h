// One shard's file: written from the copy that a cut made, read into any layout.
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

// The content of a shard: its parameters in the layout's order, and each slot in the same order.
struct ShardContent {
  std::span<const float> parameters;
  std::vector<std::span<const float>> slots;
};

// <folder>/shard-i-of-N.safetensors. Its space is reserved before the content exists, so that a full disk is noticed
// before anything waits for it.
class ShardWriter {
 public:
  // The layout must outlive the writer.
  static Result<ShardWriter> reserve(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                                     std::uint32_t slots, const std::map<std::string, std::string>& metadata);

  // Call once. Writes and syncs the file; its name is durable once the folder is synced. Takes one chunk of memory
  // beside the content.
  Result<FileEntry> write(const ShardContent& content, const IsCancelled& is_cancelled = {});

 private:
  ShardWriter(std::unique_ptr<OutputFile> file, std::string header, FileEntry entry, std::uint64_t elements,
              std::uint32_t slots)
      : file_(std::move(file)),
        header_(std::move(header)),
        entry_(std::move(entry)),
        elements_(elements),
        slots_(slots) {}

  std::unique_ptr<OutputFile> file_;
  std::string header_;
  FileEntry entry_;
  std::uint64_t elements_ = 0;
  std::uint32_t slots_ = 0;
};

// reserve() and write() in one call.
Result<FileEntry> write_shard(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                              const ShardContent& content, const std::map<std::string, std::string>& metadata,
                              const IsCancelled& is_cancelled = {});

// Fills one shard of `target` from a checkpoint in `folder` that was written with any layout, and verifies the bytes it
// reads. `parameters`: shard_elements(target, shard). `slots`: manifest.slots spans of the same length, or none for the
// parameters alone. kConfig: the variables aren't the target's. kData: a file is damaged; the content of the spans is
// undefined. kTemporary: it was cancelled.
Status read_shard(Files& files, const std::string& folder, const Manifest& manifest, const Layout& target,
                  ShardId shard, std::span<float> parameters, std::span<const std::span<float>> slots,
                  const IsCancelled& is_cancelled = {});

// Verifies every chunk of the file. kData: a checksum or the size differs; kNoInput: the file doesn't exist.
Status verify_file(Files& files, const std::string& folder, const FileEntry& entry,
                   const IsCancelled& is_cancelled = {});

// The same for all files of a checkpoint; returns the first error.
Status verify_files(Files& files, const std::string& folder, const Manifest& manifest,
                    const IsCancelled& is_cancelled = {});

}  // namespace disttrain::checkpoint
