// How much memory a shard takes: the chief refuses by this sum, `plan` prints it and the ps allocates it.
#pragma once

#include <cstdint>

#include "common/config/job_config.h"
#include "common/layout.h"

namespace disttrain {

// All in bytes. W workers, C credits, P = parameters.
struct ShardMemory {
  std::uint64_t parameters = 0;
  std::uint64_t slots = 0;  // optimizer state
  // async, ssp: W x C frames; sync: W x P per push in flight, and W frames for duplicates; clip = global_norm adds P
  std::uint64_t receive = 0;
  std::uint64_t send = 0;   // W frames; sync with backup workers: W x P, for answers under way while a step commits
  std::uint64_t copy = 0;   // of parameters and slots, for checkpoints
  std::uint64_t fixed = 0;  // code, tables, sockets

  std::uint64_t total() const { return parameters + slots + receive + send + copy + fixed; }
};

// `slots`: arrays of optimizer state per element (common/update). `workers`: expected members of the roster. `credits`:
// frames outstanding per channel. A frame has the size of the shard's largest bucket.
ShardMemory bytes_per_shard(const Layout& layout, ShardId shard, const JobConfig& job, std::uint32_t slots,
                            std::uint32_t workers, std::uint32_t credits);

// Batches that a worker's input makes ahead: data.prefetch, and for small batches up to 8 within 4 MiB. The input
// thread makes half of them per burst, and each burst costs a wake-up: with 2 batches that is one per step, a tenth of
// a small net's step.
std::uint32_t batches_ahead(const DataSection& data, std::uint64_t batch_bytes);

}  // namespace disttrain
