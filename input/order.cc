// The record at a position is computed: a Feistel network of 8 rounds, whose keys come from the seed and the epoch, is
// a permutation of the records. It takes some 30 ns a record, and no memory. A table of the shuffled order would take 8
// bytes per record, which is 1.6 GB for 200 million records. A shuffle buffer (shuffle = N) still has a table, because
// its order can't be computed from a position alone.
//
// With shuffle = "blocks" only the blocks of a window are mixed, and the order of the blocks is a table of 16 bytes per
// block. A reader then needs the blocks of two windows at a time, so it decodes each block once an epoch.
#include "input/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/check.h"
#include "common/random.h"

namespace disttrain::input {

namespace {

// A number below `bound` from 64 random bits: Lemire, "Fast Random Integer Generation in an Interval" (2019), without
// its correction. The deviation from equal probabilities is below 2^-32.
std::uint32_t scaled(std::uint64_t bits, std::uint32_t bound) {
  return static_cast<std::uint32_t>(((bits >> 32) * bound) >> 32);
}

// The output function of SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

std::uint32_t added(std::uint32_t number, std::uint32_t more, std::uint32_t bound) {
  const std::uint64_t sum = std::uint64_t{number} + more;
  return static_cast<std::uint32_t>(sum >= bound ? sum - bound : sum);
}

}  // namespace

std::uint64_t own_order_seed(std::uint64_t job_seed, Rank rank) {
  const PhiloxBlock block = random_block(job_seed, stream_of("own order"), rank.value);
  return block[0] | std::uint64_t{block[1]} << 32;
}

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream) : size_(size) {
  DISTTRAIN_CHECK_GE(size, 1u);
  DISTTRAIN_CHECK_LE(size, kMaxRecords);
  std::uint64_t root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
  while (root * root < size) ++root;
  left_sides_ = static_cast<std::uint32_t>(root);
  right_sides_ = static_cast<std::uint32_t>((size + root - 1) / root);
  Random random(seed, stream);
  for (std::uint64_t& key : keys_) key = random.bits64();
}

std::uint64_t Permutation::at(std::uint64_t i) const {
  DISTTRAIN_CHECK_LT(i, size_);
  const auto number = static_cast<std::uint32_t>(i);  // a division of 32 bits takes half of the time
  std::uint32_t left = number % left_sides_;
  std::uint32_t right = number / left_sides_;
  std::uint64_t out = 0;
  do {
    for (int round = 0; round < kRounds; round += 2) {
      left = added(left, scaled(mixed(keys_[round] ^ right), left_sides_), left_sides_);
      right = added(right, scaled(mixed(keys_[round + 1] ^ left), right_sides_), right_sides_);
    }
    out = left + std::uint64_t{right} * left_sides_;
  } while (out >= size_);
  return out;
}

// Each step of a network waits for the one before. The networks of several numbers don't wait for each other.
void Permutation::fill(std::uint64_t first, std::span<std::uint64_t> out) const {
  constexpr std::size_t kLanes = 8;
  std::size_t done = 0;
  for (; done + kLanes <= out.size(); done += kLanes) {
    DISTTRAIN_CHECK_LE(first + done + kLanes, size_);
    std::uint32_t left[kLanes];
    std::uint32_t right[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto number = static_cast<std::uint32_t>(first + done + lane);
      left[lane] = number % left_sides_;
      right[lane] = number / left_sides_;
    }
    for (int round = 0; round < kRounds; round += 2) {
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        left[lane] = added(left[lane], scaled(mixed(keys_[round] ^ right[lane]), left_sides_), left_sides_);
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        right[lane] = added(right[lane], scaled(mixed(keys_[round + 1] ^ left[lane]), right_sides_), right_sides_);
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t number = left[lane] + std::uint64_t{right[lane]} * left_sides_;
      out[done + lane] = number < size_ ? number : at(first + done + lane);
    }
  }
  for (; done < out.size(); ++done) out[done] = at(first + done);
}

// The order of one epoch.
class EpochOrder::Epoch {
 public:
  virtual ~Epoch() = default;
  // Sets `out` to the records at the positions from `first` on.
  virtual void records_at(std::uint64_t first, std::span<std::uint64_t> out) const = 0;
};

class EpochOrder::AllRecords final : public Epoch {
 public:
  AllRecords(const OrderOptions& options, std::uint32_t epoch)
      : permutation_(options.records, options.seed, stream_of("shuffle", epoch)) {}
  void records_at(std::uint64_t first, std::span<std::uint64_t> out) const override { permutation_.fill(first, out); }

 private:
  const Permutation permutation_;
};

class EpochOrder::Blocks final : public Epoch {
 public:
  Blocks(const OrderOptions& options, std::uint32_t epoch) : window_(options.window), records_(options.records) {
    const std::vector<std::uint64_t>& begins = options.blocks;
    std::vector<std::uint32_t> order(begins.size());
    std::iota(order.begin(), order.end(), 0u);
    Random random(options.seed, stream_of("shuffle blocks", epoch));
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    std::uint64_t position = 0;
    for (const std::uint32_t block : order) {
      blocks_.push_back({position, begins[block]});
      position += (block + 1 < begins.size() ? begins[block + 1] : options.records) - begins[block];
    }
    for (std::size_t first = 0; first < blocks_.size(); first += window_) {
      const std::size_t next = first + window_;
      const std::uint64_t end = next < blocks_.size() ? blocks_[next].position : position;
      windows_.emplace_back(end - blocks_[first].position, options.seed, stream_of("window", epoch ^ first << 32));
    }
  }

  void records_at(std::uint64_t first, std::span<std::uint64_t> out) const override {
    while (!out.empty()) {
      const std::size_t window = block_of(first) / window_;
      const std::span<const Block> blocks =
          std::span(blocks_).subspan(window * window_).first(std::min(window_, blocks_.size() - window * window_));
      const std::uint64_t begin = blocks.front().position;
      const std::uint64_t end =
          (window + 1) * window_ < blocks_.size() ? blocks_[(window + 1) * window_].position : records_;
      const auto part = out.first(std::min<std::uint64_t>(out.size(), end - first));
      windows_[window].fill(first - begin, part);
      for (std::uint64_t& record : part) {
        const std::uint64_t shuffled = begin + record;
        const Block& block = blocks.size() == 1 ? blocks.front() : blocks_[block_of(shuffled)];
        record = block.first_record + (shuffled - block.position);
      }
      out = out.subspan(part.size());
      first += part.size();
    }
  }

 private:
  struct Block {
    std::uint64_t position = 0;  // before its window is shuffled
    std::uint64_t first_record = 0;
  };

  std::size_t block_of(std::uint64_t position) const {
    const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), position,
                                        [](std::uint64_t p, const Block& block) { return p < block.position; });
    return static_cast<std::size_t>(after - blocks_.begin()) - 1;
  }

  const std::uint64_t window_;
  const std::uint64_t records_;
  std::vector<Block> blocks_;  // in their new order
  std::vector<Permutation> windows_;
};

// Works in place: for position i the buffer is records_[i, i + buffer). The constructor draws a record from it and
// swaps that record with records_[i]. Then the buffer moves on by one record.
class EpochOrder::Buffer final : public Epoch {
 public:
  Buffer(const OrderOptions& options, std::uint32_t epoch) : records_(options.records) {
    std::iota(records_.begin(), records_.end(), 0u);
    Random random(options.seed, stream_of("shuffle", epoch));
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const std::uint64_t choices = std::min<std::uint64_t>(options.buffer, records_.size() - i);
      std::swap(records_[i], records_[i + random.below(choices)]);
    }
  }
  void records_at(std::uint64_t first, std::span<std::uint64_t> out) const override {
    std::copy_n(records_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
  }

 private:
  std::vector<std::uint32_t> records_;
};

class EpochOrder::FileOrder final : public Epoch {
 public:
  void records_at(std::uint64_t first, std::span<std::uint64_t> out) const override {
    std::iota(out.begin(), out.end(), first);
  }
};

class EpochOrder::Buckets final : public Epoch {
 public:
  Buckets(const OrderOptions& options, std::uint32_t epoch, std::shared_ptr<const Epoch> before)
      : order_(options.buckets, options.records, options.seed, epoch,
               [before = std::move(before)](std::uint64_t first, std::span<std::uint64_t> out) {
                 before->records_at(first, out);
               }) {}
  void records_at(std::uint64_t first, std::span<std::uint64_t> out) const override { order_.records_at(first, out); }

 private:
  const BucketOrder order_;
};

EpochOrder::EpochOrder(OrderOptions options) : options_(std::move(options)) {
  DISTTRAIN_CHECK_GE(options_.records, 1u);
  DISTTRAIN_CHECK_LE(options_.records, kMaxRecords);
  if (options_.shuffle == ShuffleKind::kBuffer) DISTTRAIN_CHECK_GE(options_.buffer, 1u);
  if (options_.shuffle != ShuffleKind::kBlocks) return;
  DISTTRAIN_CHECK_GE(options_.window, 1u);
  DISTTRAIN_CHECK(!options_.blocks.empty());
  DISTTRAIN_CHECK_EQ(options_.blocks.front(), 0u);
}

void EpochOrder::records_at(std::uint32_t epoch, std::span<const Interval> positions,
                            std::vector<std::uint64_t>& out) const {
  out.clear();
  const std::shared_ptr<const Epoch> order = order_of(epoch);
  for (const Interval& interval : positions) {
    DISTTRAIN_CHECK_LE(interval.end, options_.records);
    const std::size_t old = out.size();
    out.resize(old + (interval.end - std::min(interval.begin, interval.end)));
    order->records_at(interval.begin, std::span(out).subspan(old));
  }
}

std::shared_ptr<const EpochOrder::Epoch> EpochOrder::order_of(std::uint32_t epoch) const {
  const std::lock_guard lock(mutex_);
  Cached& newest = cached_[0];
  if (newest.order != nullptr && newest.epoch == epoch) return newest.order;
  std::swap(cached_[0], cached_[1]);
  if (newest.order != nullptr && newest.epoch == epoch) return newest.order;
  newest = {};  // frees the old order before the new one is made
  newest.epoch = epoch;
  newest.order = make_order(epoch);
  if (options_.buckets.batch > 0)
    newest.order = std::make_shared<const Buckets>(options_, epoch, std::move(newest.order));
  return newest.order;
}

std::shared_ptr<const EpochOrder::Epoch> EpochOrder::make_order(std::uint32_t epoch) const {
  switch (options_.shuffle) {
    case ShuffleKind::kNone:
      return std::make_shared<const FileOrder>();
    case ShuffleKind::kBlocks:
      return std::make_shared<const Blocks>(options_, epoch);
    case ShuffleKind::kBuffer:
      return std::make_shared<const Buffer>(options_, epoch);
    case ShuffleKind::kEpoch:
      break;
  }
  return std::make_shared<const AllRecords>(options_, epoch);
}

}  // namespace disttrain::input
