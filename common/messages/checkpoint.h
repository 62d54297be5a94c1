// Checkpoints between the chief and the tasks. One attempt at a time; its number grows within a generation.
//
//   chief -> every ps        PrepareCheckpoint   -> CheckpointPrepared | CheckpointFailed   (room on the disk)
//   chief -> pacer's ps      TakeCut             sync: the pacer cuts and tells the other shards where
//   chief -> every worker    MarkChannels        async, ssp: a mark on every channel, between two pushes
//   ps -> chief              ShardWritten        of each shard, once its file is synced | CheckpointFailed
//   chief -> every ps        AbandonCheckpoint   ends this attempt and all before it, and releases marked workers. A
//                                                new chief abandons the attempts of its predecessor
//
// The chief then writes the manifest and renames the folder: common/checkpoint/job_folder.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/messages/control.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain {

// A written file of a checkpoint.
struct FileEntry {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t data_begin = 0;       // of the parameters; the header is before them
  std::uint64_t checksum = 0;         // XXH3 of the chunks' checksums, as little-endian 64-bit numbers
  std::vector<std::uint64_t> chunks;  // XXH3 of each chunk

  bool operator==(const FileEntry&) const = default;
};

// The last whole push of a worker that a shard has applied.
struct WorkerEntry {
  Member worker;
  Sequence last;
  Step clock;

  bool operator==(const WorkerEntry&) const = default;
};

// What a shard had applied at its cut.
struct ShardEntry {
  Step version;
  std::uint64_t elements = 0;
  std::vector<WorkerEntry> workers;  // ascending

  bool operator==(const ShardEntry&) const = default;
};

struct PrepareCheckpoint {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
  std::string folder;  // the attempt's own
  bool holds = false;  // nothing is applied after the cut, until the attempt is abandoned: a rollback loses no step
};

struct CheckpointPrepared {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
};

struct TakeCut {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
  Step at;  // at this step, or at once if the pacer has passed it
};

struct MarkChannels {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
};

struct AbandonCheckpoint {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
};

struct ShardWritten {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
  ShardId shard;
  ShardEntry entry;
  FileEntry file;
  std::optional<PacerReport> pacer;  // shard 0
  Duration cut{};                    // longest time that the copy blocked the shard's loop
  Duration parked{};                 // from the first mark to the cut; async, ssp
  Duration writing{};                // from the cut until the file is synced
};

struct CheckpointFailed {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
  ErrorCode code = ErrorCode::kFailed;
  std::string reason;
};

}  // namespace disttrain
