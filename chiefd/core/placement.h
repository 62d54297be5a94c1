// Placement: which shard owns which part of a model, and which ps owns which shard. Pure. The chief uses it for each
// new placement, and `disttrain plan` prints it.
//
// balanced     the model in the order in which gradients appear, cut into buckets of like size that are dealt to the
//              shards in turn: contiguous equal ranges would make all workers flood one shard at a time.
// round_robin  variable v whole on shard v mod shards.
// greedy       variables whole, the largest first, each to the emptiest shard.
// partitioned  rows (first dimension) of each variable in as many equal parts as there are shards; variables that
//              aren't cut go whole to the emptiest shard.
//
// Whatever the placement, a variable is contiguous in a worker's flat array. For placements by variable a shard's
// variables stand together there, last layer first, so that few buckets result.
#pragma once

#include <cstdint>
#include <vector>

#include "common/layout.h"

namespace disttrain::chiefd {

// A variable with fewer elements (64 KiB of float32) isn't cut: its parts wouldn't pay for their frames. A variable
// that is placed whole but is larger than a bucket is still cut into buckets, all on one shard.
inline constexpr std::uint64_t kWholeElements = 16 * 1024;

// A layout that passes validate(). kConfig when the model has no variables, a shape can't be placed, or there are more
// shards than pieces to place: the message says how many shards would do.
Result<Layout> place(const ModelSpec& model, Placement placement, std::uint32_t shards);

// job.shards = "auto": clamp(ceil(bytes / 1 MiB), 1, offered); offered >= 1. A small model on many shards pays more for
// the exchanges than it gains: 318 KB take 100, 145 and 155 us a step on 1, 2 and 4 shards, 4 MB 1600, 1180 and 780.
std::uint32_t auto_shards(std::uint64_t parameter_bytes, std::uint32_t offered);

// place() for `asked` shards, or with asked = 0 for auto_shards(), fewer where the model has fewer pieces. `offered` is
// the sum of what the ps processes offer. Also kConfig when more are asked for than offered.
Result<Layout> place_on(const ModelSpec& model, Placement placement, std::uint32_t asked, std::uint32_t offered);

// The shard threads that one ps offers.
struct Offer {
  TaskId ps;
  std::uint32_t threads = 0;
};

// The ps of each shard: each ps gets one before any gets a second. The offers must sum up to at least `shards`.
std::vector<TaskId> assign_owners(const std::vector<Offer>& offers, std::uint32_t shards);

}  // namespace disttrain::chiefd
