// Messages between the chief and the tasks about checkpoints. There is one attempt at a time. Attempts are numbered
// within a generation.
//
//   chief -> every ps        PrepareCheckpoint   -> CheckpointPrepared | CheckpointFailed   (reserves disk space)
//   chief -> pacer's ps      TakeCut             sync: the pacer cuts, and tells the others at which step
//   chief -> every worker    MarkChannels        async, ssp: a worker then sends marks between two pushes
//   ps -> chief              ShardWritten        for each shard, when its file is synced; or CheckpointFailed
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
  std::uint64_t data_begin = 0;       // offset of the parameters; the header is before them
  std::uint64_t checksum = 0;         // XXH3 of the chunks' checksums, taken as little-endian 64-bit numbers
  std::vector<std::uint64_t> chunks;  // XXH3 of each chunk

  bool operator==(const FileEntry&) const = default;
};

// A worker, and its last complete push that the shard had applied when it cut. An absent worker: only task and batches.
struct WorkerEntry {
  Member worker;
  Sequence last;
  Step clock;
  // At shard 0, with data.sharding = "none": how many batches of its order the worker has done.
  Step batches{};

  bool operator==(const WorkerEntry&) const = default;
};

// The updates that a shard had applied at its cut.
struct ShardEntry {
  Step version;
  std::uint64_t words = 0;           // of the shard's parameters; see common/layout.h
  std::vector<WorkerEntry> workers;  // ascending

  bool operator==(const ShardEntry&) const = default;
};

struct PrepareCheckpoint {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
  std::string folder;  // the folder of this attempt
  // the shards apply nothing after the cut until the attempt is abandoned, so that a later rollback loses no step
  bool holds = false;
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
  Step at;  // the step to cut at; if the pacer is past it, the pacer cuts at once
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
  Duration cut{};                    // the longest time for which the copy blocked the shard's loop
  Duration parked{};                 // async, ssp: time from the first mark to the cut
  Duration writing{};                // time from the cut until the file is synced
};

struct CheckpointFailed {
  JobId job;
  Generation generation;
  std::uint64_t attempt = 0;
  ErrorCode code = ErrorCode::kFailed;
  std::string reason;
};

}  // namespace disttrain
