// A batch of texts of different lengths is mostly padding. TensorFlow's bucket_by_sequence_length collects records
// until a bucket has a batch, so a batch depends on all records before it, and a lost worker's records can't be named
// by positions. Here a window of the order is sorted by length and cut into batches, which are shuffled. Leases are
// multiples of a step's records, so the batches that workers make are those of the windows. Only after a loss, or at
// the end of an epoch, a batch may lie across two of them, and has more padding.
//
// Every worker must know the lengths of all records. They take 4 bytes each, and come from the pass that finds
// vocabularies, which takes as long as reading an epoch. The chief compares a hash of them.
#include "input/bucket_order.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/random.h"
#include "input/order.h"

namespace disttrain::input {

namespace {

// Several workers' leases of one process, and the threads that make batches, are in a few windows at a time.
constexpr std::size_t kMostKept = 8;

}  // namespace

BucketOrder::BucketOrder(const BucketOptions& options, std::uint64_t records, std::uint64_t seed, std::uint32_t epoch,
                         RecordsAt before)
    : options_(options), records_(records), seed_(seed), epoch_(epoch), before_(std::move(before)) {
  DISTTRAIN_CHECK_GE(options_.batch, 1u);
  DISTTRAIN_CHECK_GE(options_.batches, 1u);
  DISTTRAIN_CHECK_EQ(options_.lengths.size(), records_);
}

void BucketOrder::records_at(std::uint64_t first, std::span<std::uint64_t> out) const {
  const std::uint64_t size = options_.batch * options_.batches;
  while (!out.empty()) {
    const Window records = window(first / size);
    const std::uint64_t begin = first % size;
    const std::size_t count = std::min<std::uint64_t>(out.size(), records->size() - begin);
    std::copy_n(records->begin() + static_cast<std::ptrdiff_t>(begin), count, out.begin());
    out = out.subspan(count);
    first += count;
  }
}

BucketOrder::Window BucketOrder::window(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  auto found = std::find_if(kept_.begin(), kept_.end(), [number](const Kept& kept) { return kept.number == number; });
  if (found == kept_.end()) {
    if (kept_.size() == kMostKept) kept_.pop_back();
    found = kept_.insert(kept_.end(), {number, make(number)});
  }
  std::rotate(kept_.begin(), found, found + 1);
  return kept_.front().records;
}

BucketOrder::Window BucketOrder::make(std::uint64_t number) const {
  const std::uint64_t first = number * options_.batch * options_.batches;
  std::vector<std::uint64_t> before(std::min(options_.batch * options_.batches, records_ - first));
  before_(first, before);
  std::stable_sort(before.begin(), before.end(),
                   [this](std::uint64_t a, std::uint64_t b) { return options_.lengths[a] < options_.lengths[b]; });
  const std::uint64_t whole_batches = before.size() / options_.batch;
  if (whole_batches == 0) return std::make_shared<const std::vector<std::uint64_t>>(std::move(before));
  const Permutation dealt(whole_batches, seed_, stream_of("buckets", epoch_ ^ number << 32));
  std::vector<std::uint64_t> records = before;
  for (std::uint64_t i = 0; i < whole_batches; ++i)
    std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(dealt.at(i) * options_.batch), options_.batch,
                records.begin() + static_cast<std::ptrdiff_t>(i * options_.batch));
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(records));
}

}  // namespace disttrain::input
