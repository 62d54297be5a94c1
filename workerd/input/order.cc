#include "workerd/input/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/check.h"
#include "common/random.h"

namespace disttrain::input {

namespace {

void shuffle_all(std::vector<std::uint32_t>& records, Random& random) {
  for (std::size_t i = records.size(); i > 1; --i) std::swap(records[i - 1], records[random.below(i)]);
}

// Works in place: for position i the buffer is records[i, i + buffer). The function draws a record from it and swaps
// that record with records[i]. Then the buffer moves on by one record.
void shuffle_through_buffer(std::vector<std::uint32_t>& records, std::uint64_t buffer, Random& random) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::uint64_t choices = std::min<std::uint64_t>(buffer, records.size() - i);
    std::swap(records[i], records[i + random.below(choices)]);
  }
}

}  // namespace

std::uint64_t own_order_seed(std::uint64_t job_seed, Rank rank) {
  const PhiloxBlock block = random_block(job_seed, stream_of("own order"), rank.value);
  return block[0] | std::uint64_t{block[1]} << 32;
}

std::vector<std::uint32_t> permutation(std::uint64_t records, ShuffleKind shuffle, std::uint64_t buffer,
                                       std::uint64_t seed, std::uint32_t epoch) {
  DISTTRAIN_CHECK_LE(records, kMaxRecords);
  std::vector<std::uint32_t> order(records);
  std::iota(order.begin(), order.end(), 0u);
  Random random(seed, stream_of("shuffle", epoch));
  switch (shuffle) {
    case ShuffleKind::kNone:
      break;
    case ShuffleKind::kEpoch:
      shuffle_all(order, random);
      break;
    case ShuffleKind::kBuffer:
      DISTTRAIN_CHECK_GE(buffer, 1u);
      shuffle_through_buffer(order, buffer, random);
      break;
  }
  return order;
}

EpochOrder::EpochOrder(std::uint64_t records, ShuffleKind shuffle, std::uint64_t buffer, std::uint64_t seed)
    : records_(records), shuffle_(shuffle), buffer_(buffer), seed_(seed) {
  DISTTRAIN_CHECK_GE(records, 1u);
  DISTTRAIN_CHECK_LE(records, kMaxRecords);
}

std::uint64_t EpochOrder::record_at(std::uint32_t epoch, std::uint64_t position) {
  DISTTRAIN_CHECK_LT(position, records_);
  return shuffle_ == ShuffleKind::kNone ? position : order_of(epoch)[position];
}

void EpochOrder::records_at(std::uint32_t epoch, std::span<const Interval> positions, std::vector<std::uint64_t>& out) {
  out.clear();
  for (const Interval& interval : positions) {
    DISTTRAIN_CHECK_LE(interval.end, records_);
    for (std::uint64_t position = interval.begin; position < interval.end; ++position) {
      out.push_back(record_at(epoch, position));
    }
  }
}

const std::vector<std::uint32_t>& EpochOrder::order_of(std::uint32_t epoch) {
  Cached& newest = cache_[0];
  if (newest.valid && newest.epoch == epoch) return newest.records;
  std::swap(cache_[0], cache_[1]);
  if (!newest.valid || newest.epoch != epoch) {
    newest = Cached();  // frees the old order before the new one is allocated
    newest = Cached{true, epoch, permutation(records_, shuffle_, buffer_, seed_, epoch)};
  }
  return newest.records;
}

}  // namespace disttrain::input
