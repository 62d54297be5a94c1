// The order of the records in an epoch. It is a permutation that depends only on the seed and the epoch, so it is the
// same on every machine and after a restart. A lease names positions in this order; so every worker finds the same
// records for the same positions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/messages/control.h"

namespace disttrain::input {

// A data set has at most this many records, because a permutation stores their numbers in 32 bits.
inline constexpr std::uint64_t kMaxRecords = 0xFFFFFFFF;

// With sharding = "none" each worker has an order of its own; this is its seed. With leases all workers use the job's
// seed.
std::uint64_t own_order_seed(std::uint64_t job_seed, Rank rank);

// Returns the order of one epoch: the record at each position.
// - kNone: the records are in file order.
// - kEpoch: a Fisher-Yates shuffle. Every order has the same probability.
// - kBuffer: the first `buffer` records of the file fill a buffer. Each position gets a record that is drawn from the
//   buffer. Then the file's next record fills the gap in the buffer. So a record is at most buffer - 1 positions
//   earlier than in the file. `buffer` must be at least 1.
std::vector<std::uint32_t> permutation(std::uint64_t records, ShuffleKind shuffle, std::uint64_t buffer,
                                       std::uint64_t seed, std::uint32_t epoch);

// Finds the records at given positions of an epoch. It keeps the orders of the two epochs that were used last, because
// batches of one epoch and of the next may alternate. They take 8 bytes per record; with kNone they take no memory. The
// order of another epoch is computed when it is needed, in about 10 ms per million records. All calls come from one
// thread.
class EpochOrder {
 public:
  // records: 1 .. kMaxRecords.
  EpochOrder(std::uint64_t records, ShuffleKind shuffle, std::uint64_t buffer, std::uint64_t seed);

  std::uint64_t records() const { return records_; }

  // position < records().
  std::uint64_t record_at(std::uint32_t epoch, std::uint64_t position);

  // Sets `out` to the records at all positions, in the order of the positions. Each position must be less than
  // records().
  void records_at(std::uint32_t epoch, std::span<const Interval> positions, std::vector<std::uint64_t>& out);

 private:
  struct Cached {
    bool valid = false;
    std::uint32_t epoch = 0;
    std::vector<std::uint32_t> records;
  };

  const std::vector<std::uint32_t>& order_of(std::uint32_t epoch);

  const std::uint64_t records_;
  const ShuffleKind shuffle_;
  const std::uint64_t buffer_;
  const std::uint64_t seed_;
  std::array<Cached, 2> cache_;  // the epoch that was used last comes first
};

}  // namespace disttrain::input
