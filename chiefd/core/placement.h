// Placement: decides which shard owns which part of a model, and which ps owns which shard. These functions do no I/O.
// The chief calls them for each new placement, and `disttrain plan` prints their result. A bucket is a contiguous range
// of parameters that belongs to one shard. There are four ways to place a model:
//
//   balanced     Cuts the whole model into buckets of similar size, and deals the buckets to the shards in turn. The
//                model is in the order in which a worker computes the gradients, with the last layer first. If each
//                shard had one large range instead, all workers would send to the same shard at the same time.
//   round_robin  Puts the whole variable number v on shard number (v mod shards).
//   greedy       Puts each whole variable on the shard with the fewest words so far. Starts with the largest one.
//   partitioned  Cuts the rows (first dimension) of each variable into as many equal parts as there are shards, one
//                part for each shard. A variable that is too small for this goes to one shard with few words.
//
// With every placement, a variable is contiguous in a worker's flat array of parameters. With round_robin and greedy,
// the variables of one shard are neighbours in this array, last layer first, so that few buckets result.
#pragma once

#include <cstdint>
#include <vector>

#include "common/config/job_config.h"
#include "common/layout.h"

namespace disttrain::chiefd {

// A variable with fewer words than this (64 KiB) isn't cut, because each part would need a frame of its
// own, which costs more than the cut gains. A larger variable that goes to one shard may still fall into several
// buckets, all on this shard.
inline constexpr std::uint64_t kWholeWords = 16 * 1024;

// How "balanced" cuts a model. kLarge: into as few buckets as possible, so that there are few frames. kSmall: into up
// to 4 buckets for each shard, with 128 KiB or more each; or into as many as with kLarge, if those are more. Then a
// shard applies one bucket while the worker computes the gradients of the next.
enum class BucketSize { kLarge, kSmall };

// kSmall if there is one worker. Then the shards would have nothing to do while it computes, and it would wait while
// they work. With more workers, one computes while a shard serves another, so the additional frames gain little.
BucketSize bucket_size_for(std::size_t workers);

// The placement for a job's model: job.placement, except that "balanced" becomes "greedy" if the job's update rule
// needs each variable whole on one shard (lamb).
Placement placement_of(const JobConfig& job);

// Returns a layout that passes validate(). Fails with kConfig if the model has no variables, has a variable without
// elements, is too large, or can't be divided among so many shards. In the last case the message says how many shards
// are possible.
Result<Layout> place(const ModelSpec& model, Placement placement, std::uint32_t shards,
                     BucketSize size = BucketSize::kLarge);

// The number of shards for job.shards = "auto": clamp(ceil(bytes / 1 MiB * max(1, workers / 8)), 1, offered). `offered`
// must be at least 1. If a small model has many shards, the extra messages take more time than the shards save. For
// example, a step takes 100, 145 and 155 us on 1, 2 and 4 shards with a model of 318 KB, but 1600, 1180 and 780 us with
// a model of 4 MB. If there are many workers, the network cards of the ps are the limit: with 1,000 workers, a step of
// a model of 318 KB takes 254 ms on 1 shard, and 7.5 ms on 38 (`disttrain bench scale`).
std::uint32_t auto_shards(std::uint64_t parameter_bytes, std::size_t workers, std::uint32_t offered);

// Calls place() for `asked` shards, with bucket_size_for(workers). If `asked` is 0, the number of shards is
// auto_shards(), or less if the model can't be divided among so many. `workers` is the number of workers that will
// train, and `offered` the number of shards that all ps tasks together offer. Also fails with kConfig if `asked` is
// more than `offered`.
Result<Layout> place_on(const ModelSpec& model, Placement placement, std::uint32_t asked, std::size_t workers,
                        std::uint32_t offered);

// How many shard threads a ps offers.
struct Offer {
  TaskId ps;
  std::uint32_t threads = 0;
};

// Chooses a ps for each shard. Every ps gets its first shard before any ps gets a second one. All ps tasks together
// must offer at least `shards` threads.
std::vector<TaskId> assign_owners(const std::vector<Offer>& offers, std::uint32_t shards);

}  // namespace disttrain::chiefd
