// MANIFEST.json: what a checkpoint is and holds. It is written last; a folder without one is no checkpoint.
//
// A shard's file holds its parameters in the shard's order (Layout: its buckets one after the other), then each slot in
// the same order. So a slice's place in the file is a sum.
//
// Its last line is the XXH3 of all text before it: without it, a flipped bit in a ledger wouldn't be noticed. Manifests
// of format 1 have no such line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/layout.h"
#include "common/messages/checkpoint.h"
#include "common/messages/control.h"
#include "common/result.h"

namespace disttrain::checkpoint {

// The manifest format. A newer one is refused.
inline constexpr std::uint32_t kFormat = 2;
// Files are verified in chunks of this size from the file's beginning; the last may be shorter.
inline constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
inline constexpr const char* kManifestName = "MANIFEST.json";
// The index of variables to files, under the name that Hugging Face's readers expect.
inline constexpr const char* kIndexName = "model.safetensors.index.json";

using disttrain::FileEntry;
using disttrain::ShardEntry;
using disttrain::WorkerEntry;

// A contiguous run of a variable's elements and its place.
struct SliceEntry {
  std::uint64_t begin = 0;  // within the variable
  std::uint64_t elements = 0;
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;  // elements, within the shard's parameters

  bool operator==(const SliceEntry&) const = default;
};

struct VariableEntry {
  std::string name;
  std::vector<std::uint64_t> shape;
  VariableKind kind = VariableKind::kTrainable;
  std::vector<SliceEntry> slices;  // ascending, gapless

  bool operator==(const VariableEntry&) const = default;
};

// The part that only the pacer knows.
struct PacerEntry {
  std::uint64_t examples = 0;
  std::uint64_t late = 0;
  std::uint64_t skipped = 0;
  std::uint32_t complete_epochs = 0;
  std::vector<EpochLedger> ledger;
};

struct Manifest {
  std::string job;
  Generation generation;
  Step step;
  std::uint64_t attempt = 0;
  std::int64_t created = 0;  // Unix time, seconds
  std::string job_toml;
  std::uint64_t seed = 0;
  std::uint64_t records = 0;             // of an epoch; 0: unknown
  std::string rule;                      // of the optimizer
  std::uint32_t slots = 0;               // per parameter
  std::vector<VariableEntry> variables;  // in the model's order
  std::vector<ShardEntry> shards;
  std::vector<FileEntry> files;  // of each shard in order, then other files
  PacerEntry pacer;
};

// The pacer's state to continue from.
PacerReport report_of(const Manifest& manifest);

// "shard-0-of-2.safetensors".
std::string shard_file_name(std::uint32_t shard, std::uint32_t shards);

// "[7, 3]".
std::string shape_text(const std::vector<std::uint64_t>& shape);

// The slices of each variable under a layout; adjacent slices are merged.
std::vector<VariableEntry> variables_of(const Layout& layout);

std::string to_json(const Manifest& manifest);
// Checks for every fault that a manifest can have: not JSON, a newer format, sizes that don't add up. kData; kConfig: a
// newer format. A manifest that passes is safe to index with. `path` is for messages.
Result<Manifest> parse_manifest(const std::string& text, const std::string& path);

}  // namespace disttrain::checkpoint
