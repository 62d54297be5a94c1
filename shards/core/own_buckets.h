// OwnBuckets: the buckets of the layout that belong to one shard, by their number within the shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/layout.h"

namespace disttrain::shards {

struct OwnBucket {
  BucketId id;
  std::uint64_t bytes = 0;
  std::string first_variable;  // the variable with which it begins, for errors
};

class OwnBuckets {
 public:
  OwnBuckets(const Layout& layout, ShardId shard) : index_(layout.buckets.size(), kForeign) {
    for (const BucketId bucket : buckets_of(layout, shard)) {
      index_[bucket.value] = static_cast<std::uint32_t>(buckets_.size());
      const std::uint32_t first = slices_of(layout, bucket).front().variable;
      buckets_.push_back(
          OwnBucket{bucket, layout.buckets[bucket.value].words * sizeof(float), layout.model.variables[first].name});
    }
  }

  std::size_t size() const { return buckets_.size(); }
  // Ascending by id. REQUIRES: number < size().
  const OwnBucket& operator[](std::size_t number) const { return buckets_[number]; }
  auto begin() const { return buckets_.begin(); }
  auto end() const { return buckets_.end(); }

  // The bucket's number within the shard; none if it isn't in the layout or belongs to another shard.
  std::optional<std::uint32_t> number_of(BucketId bucket) const {
    if (bucket.value >= index_.size() || index_[bucket.value] == kForeign) return std::nullopt;
    return index_[bucket.value];
  }

 private:
  static constexpr std::uint32_t kForeign = 0xffffffff;

  std::vector<OwnBucket> buckets_;
  std::vector<std::uint32_t> index_;  // by BucketId: the number within the shard, or kForeign
};

}  // namespace disttrain::shards
