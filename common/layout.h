// Layout: where each element of each variable lives, fixed for a generation; so frames carry bytes only.
//
// A worker keeps all parameters in one flat float32 array and all gradients in another, both in layout order. A shard
// keeps its own buckets one after the other. A bucket is contiguous in both, so it moves with one copy or none. Buckets
// are in the order in which gradients appear (the last layer first): bucket 0 is ready first.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain {

inline constexpr std::uint64_t kMaxBucketElements = 256 * 1024;  // 1 MiB of float32

struct Bucket {
  ShardId shard;
  std::uint64_t flat_begin = 0;   // first element in a worker's flat array
  std::uint64_t shard_begin = 0;  // first element in the shard's array
  std::uint64_t elements = 0;     // 1 .. kMaxBucketElements

  bool operator==(const Bucket&) const = default;
};

// A contiguous run of elements of one variable inside one bucket.
struct Slice {
  std::uint32_t variable = 0;        // index into ModelSpec::variables
  std::uint64_t variable_begin = 0;  // first element within the variable
  std::uint64_t bucket_begin = 0;    // first element within the bucket
  std::uint64_t elements = 0;
};

struct Layout {
  ModelSpec model;
  std::uint32_t shards = 0;                    // number of shards, >= 1
  std::vector<std::uint64_t> variable_begins;  // flat position of each variable's first element; each is contiguous
  std::vector<Bucket> buckets;                 // ascending in flat_begin, without gaps

  bool operator==(const Layout&) const = default;
};

// Checks for every problem that a peer's layout can have: gaps, overlaps, sizes, shards out of range. A layout that
// passes is safe to index with.
Status validate(const Layout& layout);

LayoutHash hash_of(const Layout& layout);

std::uint64_t shard_elements(const Layout& layout, ShardId shard);

// Ids of the shard's buckets, ascending.
std::vector<BucketId> buckets_of(const Layout& layout, ShardId shard);

// The slices of one bucket, in order; they cover the bucket exactly.
std::vector<Slice> slices_of(const Layout& layout, BucketId bucket);

}  // namespace disttrain
