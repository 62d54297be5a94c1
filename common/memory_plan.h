// Computes how much memory a shard needs. The chief refuses a job that needs too much, `disttrain plan` prints the
// numbers, and the ps allocates this memory. Also says how large the batches of a worker are, for its memory.
#pragma once

#include <cstdint>

#include "common/config/job_config.h"
#include "common/layout.h"

namespace disttrain {

// All numbers are bytes. W is the number of workers, C the credits per channel, P the size of the shard's parameters.
struct ShardMemory {
  std::uint64_t parameters = 0;
  std::uint64_t slots = 0;  // optimizer state
  // Memory for received gradients. async, ssp: W x C frames. sync: for each worker, the pushes that may be in
  // flight (P, or 2 x P with train.pipeline = 1) and a frame for duplicates. clip = global_norm adds P once.
  std::uint64_t receive = 0;
  // memory for answers: W frames; W x P in sync with train.aggregate, where a step may commit while answers are sent
  std::uint64_t send = 0;
  std::uint64_t copy = 0;   // for checkpoints: a copy of parameters and slots
  std::uint64_t fixed = 0;  // code, tables, sockets

  std::uint64_t total() const { return parameters + slots + receive + send + copy + fixed; }
};

// `slots` is the number of optimizer slots per element (common/update). `workers` is the expected number of workers.
// `credits` is the largest number of unanswered frames of a channel. A frame has the size of the shard's largest
// bucket.
ShardMemory bytes_per_shard(const Layout& layout, ShardId shard, const JobConfig& job, std::uint32_t slots,
                            std::uint32_t workers, std::uint32_t credits);

// Returns how many batches a worker's input prepares ahead: the larger of two numbers. One is data.prefetch. The other
// is the number of batches that fit into 4 MiB, but at most 8. The input thread prepares half of the batches at a time,
// and each time costs a wake-up. If it prepared only 2 batches ahead, it would wake up at each step. This would cost a
// tenth of a small model's step.
std::uint32_t batches_ahead(const DataSection& data, std::uint64_t batch_bytes);

// Returns the most records that a worker evaluates at a time: evaluate.batch_size, or if that is 0:
// - for the builtin models linear, mlp, cnn, wide_deep and matrix_factorization 1000, because a small batch would leave
//   most of a processor unused, and a record takes little memory;
// - for all other models train.batch_size. The activations of one of their records may take hundreds of megabytes, but
//   a batch of this size is known to fit into memory. A program with a fixed batch trains with this size, too.
std::uint64_t evaluation_batch_records(const JobConfig& job);

}  // namespace disttrain
