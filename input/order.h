// The order of the records in an epoch. It is a permutation that depends only on the seed and the epoch, so it is the
// same on every machine and after a restart. A lease names positions in this order; so every worker finds the same
// records for the same positions.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/messages/control.h"
#include "input/bucket_order.h"

namespace disttrain::input {

// A data set has at most this many records.
inline constexpr std::uint64_t kMaxRecords = 0xFFFFFFFF;

// With sharding = "none" each worker has an order of its own; this is its seed. With leases all workers use the job's
// seed.
std::uint64_t own_order_seed(std::uint64_t job_seed, Rank rank);

// A permutation of the numbers below `size` that is computed and not stored: at(i) takes about 30 ns, and an object
// takes less than 100 bytes. It is a Feistel network over pairs (left, right) with left < a, right < b and a * b just
// above `size`: Black & Rogaway, "Ciphers with Arbitrary Finite Domains" (CT-RSA 2002), section 5. A result that isn't
// below `size` goes through the network again (their section 4).
class Permutation {
 public:
  // size: 1 .. kMaxRecords. The permutation depends on both other arguments.
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream);

  // i < size.
  std::uint64_t at(std::uint64_t i) const;
  // Sets `out` to at(first), at(first + 1) and so on. It computes several of them at a time, which takes a third of the
  // time for each.
  void fill(std::uint64_t first, std::span<std::uint64_t> out) const;

 private:
  static constexpr int kRounds = 8;

  std::uint64_t size_;
  std::uint32_t left_sides_;   // a
  std::uint32_t right_sides_;  // b
  std::uint64_t keys_[kRounds];
};

struct OrderOptions {
  std::uint64_t records = 0;  // 1 .. kMaxRecords
  ShuffleKind shuffle = ShuffleKind::kEpoch;
  std::uint64_t buffer = 0;  // kBuffer: records, at least 1
  std::uint64_t window = 0;  // kBlocks: blocks, at least 1
  std::uint64_t seed = 0;
  // kBlocks: the first record of each block, ascending from 0. A block is the records that are read together.
  std::vector<std::uint64_t> blocks = {};
  BucketOptions buckets = {};  // then batches of about the same length are made of the order (bucket_order.h)
};

// Finds the records at given positions of an epoch. The order of an epoch is:
// - kNone: the records are in file order.
// - kEpoch: any permutation of all records. It takes no memory.
// - kBlocks: the blocks are shuffled. Each `window` blocks that follow each other in this order are a window, and the
//   records of a window are shuffled together. So a reader needs the blocks of one or two windows at a time.
// - kBuffer: the first `buffer` records of the file fill a buffer. Each position gets a record that is drawn from the
//   buffer. Then the file's next record fills the gap in the buffer. So a record is at most buffer - 1 positions
//   earlier than in the file.
//
// With kBlocks an epoch's order takes 16 bytes per block, with kBuffer 4 bytes per record. The orders of the two epochs
// that were used last are kept, because batches of one epoch and of the next may alternate. Any thread may call the
// functions.
class EpochOrder {
 public:
  explicit EpochOrder(OrderOptions options);

  std::uint64_t records() const { return options_.records; }

  // Sets `out` to the records at all positions, in the order of the positions. Each position must be less than
  // records().
  void records_at(std::uint32_t epoch, std::span<const Interval> positions, std::vector<std::uint64_t>& out) const;

 private:
  class Epoch;
  class AllRecords;
  class Blocks;
  class Buffer;
  class FileOrder;
  class Buckets;

  std::shared_ptr<const Epoch> order_of(std::uint32_t epoch) const;
  std::shared_ptr<const Epoch> make_order(std::uint32_t epoch) const;

  OrderOptions options_;
  // mutex_ guards the member below. It is held while an order is made.
  mutable std::mutex mutex_;
  struct Cached {
    std::uint32_t epoch = 0;
    std::shared_ptr<const Epoch> order;
  };
  mutable Cached cached_[2];  // the epoch that was used last comes first
};

}  // namespace disttrain::input
