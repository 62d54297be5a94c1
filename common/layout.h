// A layout says where each element of each variable is stored. It doesn't change within a generation. So frames need no
// description of their content.
//
// A worker keeps all parameters in one flat array, and all gradients in another, both in the layout's order. A shard
// keeps its own buckets in an array, one after the other. A bucket is contiguous in the worker's arrays and in the
// shard's array, so moving it takes one copy or none. Buckets are in the order in which a backward pass produces
// gradients, from the last layer to the first; the gradient of bucket 0 is ready first.
//
// All positions and lengths in a layout count words of 4 bytes. An element of a float32 variable takes one word, an
// element of a float64 variable takes two. So code that only moves bytes needs no dtype, and it calls the arrays
// std::span<float>, because the elements of nearly all models are float32. Code that computes asks for the dtype; see
// common/doubles.h. All variables of a bucket have the same dtype. The float64 variables come first, in the flat arrays
// and so in each shard's array. So a double always begins at an even word.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain {

inline constexpr std::uint64_t kMaxBucketWords = 256 * 1024;  // 1 MiB

struct Bucket {
  ShardId shard;
  std::uint64_t flat_begin = 0;   // index of its first word in a worker's flat arrays
  std::uint64_t shard_begin = 0;  // index of its first word in the shard's array
  std::uint64_t words = 0;        // 1 .. kMaxBucketWords

  bool operator==(const Bucket&) const = default;
};

// A contiguous run of words that belongs to one variable and one bucket.
struct Slice {
  std::uint32_t variable = 0;        // index into ModelSpec::variables
  std::uint64_t variable_begin = 0;  // first word within the variable
  std::uint64_t bucket_begin = 0;    // first word within the bucket
  std::uint64_t words = 0;
};

struct Layout {
  ModelSpec model;
  std::uint32_t shards = 0;  // number of shards, >= 1
  // for each variable, the index of its first word in the flat array; its other words follow
  std::vector<std::uint64_t> variable_begins;
  std::vector<Bucket> buckets;  // ascending by flat_begin, without gaps

  bool operator==(const Layout&) const = default;
};

// Checks a layout that came from a peer. Refuses every possible error: gaps, overlaps, bad sizes, shards that don't
// exist, buckets with two dtypes. All numbers of a valid layout are safe to use as indices.
Status validate(const Layout& layout);

LayoutHash hash_of(const Layout& layout);

std::uint64_t shard_words(const Layout& layout, ShardId shard);

// The dtype of all variables of the bucket.
DType dtype_of(const Layout& layout, BucketId bucket);

// Returns the ids of the shard's buckets in ascending order.
std::vector<BucketId> buckets_of(const Layout& layout, ShardId shard);

// Returns the slices of a bucket in order. Together they are exactly the bucket.
std::vector<Slice> slices_of(const Layout& layout, BucketId bucket);

}  // namespace disttrain
