// Which record stands at a position of an epoch: a seeded permutation, the same on every machine. So a lease of
// positions means the same records to the chief, to every worker and after a restart.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/messages/control.h"

namespace disttrain::input {

inline constexpr std::uint64_t kMaxRecords = 0xFFFFFFFF;  // of a data set: the most that a permutation can number

// The seed of a worker's own order, with sharding = "none". With leases all workers share the job's seed.
std::uint64_t own_order_seed(std::uint64_t job_seed, Rank rank);

// The whole order of one epoch.
// kNone: identity. kEpoch: Fisher-Yates shuffle, every order equally likely. kBuffer: records pass in file order
// through a buffer of `buffer` >= 1 records, from which each next one is drawn. A record comes at most buffer - 1
// positions early, and on average a buffer's length late.
std::vector<std::uint32_t> permutation(std::uint64_t records, ShuffleKind shuffle, std::uint64_t buffer,
                                       std::uint64_t seed, std::uint32_t epoch);

// Random access to the orders of a few epochs. Belongs to one thread. Keeps the two epochs used last, because leases of
// one epoch and the next are used side by side: 8 bytes per record, none with kNone. Another epoch is made on demand,
// in about 10 ms per million records.
class EpochOrder {
 public:
  // records: 1 .. kMaxRecords.
  EpochOrder(std::uint64_t records, ShuffleKind shuffle, std::uint64_t buffer, std::uint64_t seed);

  std::uint64_t records() const { return records_; }

  // position < records().
  std::uint64_t record_at(std::uint32_t epoch, std::uint64_t position);

  // Replaces `out` with the records at all positions, in order. Each position < records().
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
  std::array<Cached, 2> cache_;  // most recently used first
};

}  // namespace disttrain::input
