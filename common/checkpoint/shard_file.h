// One shard's file: written from the copy that a cut has made, read into any layout.
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

// What a shard holds: its parameters in the layout's order, and each slot alike.
struct ShardContent {
  std::span<const float> parameters;
  std::vector<std::span<const float>> slots;
};

// <folder>/shard-i-of-N.safetensors: made with room for all its bytes before the content is there, so that a full disk
// is known before anything waits for it.
class ShardWriter {
 public:
  // The layout must live as long as the writer.
  static Result<ShardWriter> reserve(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                                     std::uint32_t slots, const std::map<std::string, std::string>& metadata);

  // Once. Writes and syncs the file; its name isn't durable before the folder is synced. Besides the content it takes
  // one chunk of memory.
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

// Both at once.
Result<FileEntry> write_shard(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                              const ShardContent& content, const std::map<std::string, std::string>& metadata,
                              const IsCancelled& is_cancelled = {});

// Fills one shard of `target` from a checkpoint in `folder`, whatever the layout it was written with. What is read is
// verified. `parameters`: shard_elements(target, shard); `slots`: as many as manifest.slots, each as long, or none: the
// parameters alone. kConfig: the variables aren't the target's. kData: a file is damaged; nothing can be said of what
// was filled then. kTemporary: it was cancelled.
Status read_shard(Files& files, const std::string& folder, const Manifest& manifest, const Layout& target,
                  ShardId shard, std::span<float> parameters, std::span<const std::span<float>> slots,
                  const IsCancelled& is_cancelled = {});

// Every chunk of the file has its checksum. kData: one hasn't, or the size differs; kNoInput: there is no such file.
Status verify_file(Files& files, const std::string& folder, const FileEntry& entry,
                   const IsCancelled& is_cancelled = {});

// The same for all files of a checkpoint; the first that is damaged is the error.
Status verify_files(Files& files, const std::string& folder, const Manifest& manifest,
                    const IsCancelled& is_cancelled = {});

}  // namespace disttrain::checkpoint
