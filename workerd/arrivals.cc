#include "workerd/arrivals.h"

#include <algorithm>

namespace disttrain::workerd {

Arrivals::Arrivals(const Layout& layout) : layout_(layout), missing_(layout.buckets.size()) {}

void Arrivals::expect(BucketId bucket) {
  const std::lock_guard lock(mutex_);
  set_missing(bucket, true);
}

void Arrivals::expect_all(ShardId shard) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t b = 0; b < missing_.size(); ++b)
    if (layout_.buckets[b].shard == shard) set_missing(BucketId(b), true);
}

void Arrivals::arrived(BucketId bucket) {
  {
    const std::lock_guard lock(mutex_);
    set_missing(bucket, false);
  }
  changed_.notify_all();
}

void Arrivals::set_missing(BucketId bucket, bool missing) {
  if (missing_.at(bucket.value) == missing) return;
  missing_[bucket.value] = missing;
  missing ? ++missing_count_ : --missing_count_;
}

void Arrivals::open() {
  const std::lock_guard lock(mutex_);
  is_closed_ = false;
  waited_ = {};
}

void Arrivals::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
}

std::chrono::nanoseconds Arrivals::waited() const {
  const std::lock_guard lock(mutex_);
  return waited_;
}

std::uint64_t Arrivals::wait(std::uint64_t begin, std::uint64_t end) {
  std::unique_lock lock(mutex_);
  std::uint64_t here = here_until(begin, end);
  if (here == begin && !is_closed_) {
    const auto since = std::chrono::steady_clock::now();
    changed_.wait(lock, [&] { return is_closed_ || (here = here_until(begin, end)) > begin; });
    waited_ += std::chrono::steady_clock::now() - since;
  }
  return is_closed_ ? begin : here;
}

std::uint64_t Arrivals::here_until(std::uint64_t begin, std::uint64_t end) const {
  const auto& buckets = layout_.buckets;
  const auto after =
      std::upper_bound(buckets.begin(), buckets.end(), begin,
                       [](std::uint64_t word, const Bucket& bucket) { return word < bucket.flat_begin; });
  for (auto b = static_cast<std::size_t>(after - buckets.begin()) - 1; begin < end && !missing_[b]; ++b)
    begin = std::min(end, buckets[b].flat_begin + buckets[b].words);
  return begin;
}

}  // namespace disttrain::workerd
