// One shard's file: written from the copy that a cut has made, read into any layout.
#pragma once

#include <functional>
#include <map>
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

// Asked between chunks; true ends the writing with an error.
using IsCancelled = std::function<bool()>;

// Bytes of the file that write_shard() makes: reserved before a cut is taken.
std::uint64_t shard_file_bytes(const Layout& layout, ShardId shard, std::uint32_t slots,
                               const std::map<std::string, std::string>& metadata);

// Writes and syncs <folder>/shard-i-of-N.safetensors; the name isn't durable before the folder is synced. Besides the
// content it takes one chunk of memory.
Result<FileEntry> write_shard(Files& files, const std::string& folder, const Layout& layout, ShardId shard,
                              const ShardContent& content, const std::map<std::string, std::string>& metadata,
                              const IsCancelled& is_cancelled = {});

// Fills one shard of `target` from a checkpoint in `folder`, whatever the layout it was written with. What is read is
// verified. `parameters`: shard_elements(target, shard); `slots`: as many as manifest.slots, each as long, or none: the
// parameters alone. kConfig: the variables aren't the target's. kData: a file is damaged; nothing can be said of what
// was filled then.
Status read_shard(Files& files, const std::string& folder, const Manifest& manifest, const Layout& target,
                  ShardId shard, std::span<float> parameters, std::span<const std::span<float>> slots);

// Every chunk of the file has its checksum. kData: one hasn't, or the size differs; kNoInput: there is no such file.
Status verify_file(Files& files, const std::string& folder, const FileEntry& entry,
                   const IsCancelled& is_cancelled = {});

// The same for all files of a checkpoint; the first that is damaged is the error.
Status verify_files(Files& files, const std::string& folder, const Manifest& manifest,
                    const IsCancelled& is_cancelled = {});

}  // namespace disttrain::checkpoint
