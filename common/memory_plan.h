// How much memory a shard takes: one sum that the chief refuses by, `plan` prints and the ps allocates.
#pragma once

#include <cstdint>

#include "common/config/job_config.h"
#include "common/layout.h"

namespace disttrain {

// All in bytes. W workers, C credits, P = parameters.
struct ShardMemory {
  std::uint64_t parameters = 0;
  std::uint64_t slots = 0;  // optimizer state
  // async, ssp: W x C frames; sync: W x P per push in flight, and W frames for duplicates; P more with clip =
  // global_norm
  std::uint64_t receive = 0;
  std::uint64_t send = 0;   // W frames; sync with backup workers: W x P, answers under way while a step commits
  std::uint64_t copy = 0;   // of parameters and slots, for checkpoints
  std::uint64_t fixed = 0;  // code, tables, sockets

  std::uint64_t total() const { return parameters + slots + receive + send + copy + fixed; }
};

// `slots`: arrays of optimizer state per element (common/update). `workers`: expected members of the roster.
// `credits`: frames outstanding per channel. A frame is as big as the shard's largest bucket.
ShardMemory bytes_per_shard(const Layout& layout, ShardId shard, const JobConfig& job, std::uint32_t slots,
                            std::uint32_t workers, std::uint32_t credits);

// Batches that a worker's input makes ahead: data.prefetch, and of small batches up to 8 within 4 MiB. Its thread works
// in bursts, half of them at a time, and each burst is a wake-up: with 2 batches there was one per step, a tenth of a
// small net's step.
std::uint32_t batches_ahead(const DataSection& data, std::uint64_t batch_bytes);

}  // namespace disttrain
