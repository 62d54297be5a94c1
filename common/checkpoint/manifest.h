// MANIFEST.json describes a checkpoint and its files. It is written last, so a folder without a manifest isn't a
// complete checkpoint.
//
// The file of a shard holds the parameters in the order of the shard's array (bucket after bucket, see
// common/layout.h), and then each slot array in the same order. So the place of a slice in the file can be computed
// from its place in the shard.
//
// Lengths and places in a shard count words of 4 bytes, as in common/layout.h. In the JSON the number of a shard's
// words has the name "elements", because all variables were float32 when the format was made.
//
// The last line of a manifest is the XXH3 checksum of all text before that line. It reveals damage that leaves the text
// valid JSON, such as a flipped bit in a number of the ledger. Manifests of format 1 have no such line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/layout.h"
#include "common/messages/checkpoint.h"
#include "common/messages/control.h"
#include "common/result.h"

namespace disttrain::checkpoint {

// The newest manifest format. A newer one is refused. A manifest without float64 variables is written in format 2, so
// that older versions can read it.
inline constexpr std::uint32_t kFormat = 3;
// Each file is verified in chunks of this size. The last chunk may be shorter.
inline constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
inline constexpr const char* kManifestName = "MANIFEST.json";
// The file that maps variables to files. Hugging Face's readers expect it under this name.
inline constexpr const char* kIndexName = "model.safetensors.index.json";

// The file that keeps what a checkpoint needs of a step program (common/program/kept_program.h).
inline constexpr const char* kProgramName = "program.safetensors";

using disttrain::FileEntry;
using disttrain::ShardEntry;
using disttrain::WorkerEntry;

// A contiguous run of words of a variable, and its place in a shard.
struct SliceEntry {
  std::uint64_t begin = 0;  // within the variable
  std::uint64_t words = 0;
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;  // within the shard's parameters

  bool operator==(const SliceEntry&) const = default;
};

struct VariableEntry {
  std::string name;
  std::vector<std::uint64_t> shape;
  VariableKind kind = VariableKind::kTrainable;
  std::vector<SliceEntry> slices;                       // ascending, gapless
  disttrain::DType dtype = disttrain::DType::kFloat32;  // kFloat32 or kFloat64

  bool operator==(const VariableEntry&) const = default;
};

// The pacer's part of a checkpoint.
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
  std::uint64_t records = 0;  // of an epoch; 0: unknown
  // data.sharding = "none": the records of a batch in which WorkerEntry::batches counts. 0: another sharding. None: not
  // known, because an earlier version has made the checkpoint.
  std::optional<std::uint64_t> own_batch;
  std::string rule;                      // of the optimizer
  std::uint32_t slots = 0;               // per parameter, with the moving average
  bool has_average = false;              // the last slot is the moving average of the parameters
  std::vector<VariableEntry> variables;  // in the model's order
  std::vector<ShardEntry> shards;
  std::vector<FileEntry> files;  // the file of each shard in order, then the other files
  PacerEntry pacer;
};

// The pacer's state, from which a job continues after a restore.
PacerReport report_of(const Manifest& manifest);

// The entry of a file other than the shards' files, or null.
const FileEntry* find_file(const Manifest& manifest, const std::string& name);

// "shard-0-of-2.safetensors".
std::string shard_file_name(std::uint32_t shard, std::uint32_t shards);

// The number of words in an element of the variable: 2 for float64, else 1.
std::uint64_t element_words(const VariableEntry& variable);

// "[7, 3]".
std::string shape_text(const std::vector<std::uint64_t>& shape);

// Returns the slices of each variable in a layout. Adjacent slices are merged.
std::vector<VariableEntry> variables_of(const Layout& layout);

std::string to_json(const Manifest& manifest);
// Checks everything in a manifest that later code relies on. Fails with kConfig if the manifest's format is newer than
// kFormat, and with kData if it isn't JSON, its checksum is wrong or its sizes are inconsistent. All numbers of an
// accepted manifest are safe to use as indices. `path` is used only in messages. Throws std::bad_alloc: then the
// manifest may be intact.
Result<Manifest> parse_manifest(const std::string& text, const std::string& path);

}  // namespace disttrain::checkpoint
