// Arrivals: knows which buckets of parameters haven't arrived yet. A computation that begins meanwhile waits here for
// those that it reads (ParametersGate).
//
// Only wait() may be called from another thread. All other functions are for the loop's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/layout.h"
#include "engine/engine.h"

namespace disttrain::workerd {

class Arrivals final : public ParametersGate {
 public:
  // `layout` must outlive this object, and its buckets must be in ascending order.
  explicit Arrivals(const Layout& layout);

  // This bucket, or all of a shard, will arrive.
  void expect(BucketId bucket);
  void expect_all(ShardId shard);
  // The bucket is in the array of parameters.
  void arrived(BucketId bucket);
  // Whether nothing is expected.
  bool all_here() const { return missing_count_ == 0; }

  // From now on wait() waits.
  void open();
  // From now on wait() returns at once, also in a thread that waits now.
  void close();
  // The time that wait() has spent since open().
  std::chrono::nanoseconds waited() const;

  std::uint64_t wait(std::uint64_t begin, std::uint64_t end) override;

 private:
  void set_missing(BucketId bucket, bool missing);
  std::uint64_t here_until(std::uint64_t begin, std::uint64_t end) const;

  const Layout& layout_;
  mutable std::mutex mutex_;  // guards all members below; the loop's thread alone writes missing_count_
  std::condition_variable changed_;
  std::vector<bool> missing_;  // by bucket
  std::size_t missing_count_ = 0;
  bool is_closed_ = true;
  std::chrono::nanoseconds waited_{};
};

}  // namespace disttrain::workerd
