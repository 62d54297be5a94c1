// Between workers and shards (channels) and between shards and their pacer. A frame's tensor bytes are its payload and
// are not part of these; job, generation and sequence are in the frame's header.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/messages/control.h"
#include "common/positions.h"
#include "common/rank_set.h"

namespace disttrain {

// What a push frame asks for. kBucket streams large models: each bucket comes back as soon as it is applied.
enum class Want : std::uint8_t { kNothing, kBucket, kAll };

// worker -> shard: one bucket of gradients; payload = its elements as float32, or nothing if `skipped`.
// A push is the frames of one step on one channel; the last one has `last`. The fields from `examples` on count on the
// last frame only.
struct Push {
  BucketId bucket;
  Step clock;         // the worker's step, from 1; sync: the step this gradient is for
  Step pull_version;  // the shard's version at the pull that the gradient was computed from
  Want want = Want::kNothing;
  bool last = false;
  bool skipped = false;  // the loss wasn't finite: nothing to apply, the step counts, its records are visited
  std::uint32_t examples = 0;
  float loss = std::numeric_limits<float>::quiet_NaN();
  LeaseId lease;  // 0 with sharding = "none"
  std::uint32_t epoch = 0;
  Positions visited;     // positions of the epoch, at most a batch's worth
  RosterVersion roster;  // sync with leases: that the gradient's records were lent to; void under any other
  // Last frame: the worker pushes no more, so ssp waits for it no longer. A worker that learns too late that its last
  // push was its last sends an empty one: no payload, examples 0, last and final. So does one that waits for a lease;
  // its next push takes it back.
  bool final = false;
};

// worker -> shard: parameters without a push: first step, joiners, evaluation.
struct Pull {
  std::uint64_t id = 0;  // comes back in the answer
  bool begins = false;   // ssp: what is computed on the answer is pushed: the others wait for this worker from now on
  Step clock{};          // begins: of its last push
};

enum class PushOutcome : std::uint8_t {
  kNone,       // answers a pull
  kApplied,    // or, in sync, part of the committed step
  kSkipped,    // not finite; the worker's own
  kLate,       // sync: the step was committed without it, or its roster is gone; dropped
  kDuplicate,  // was taken before
  kFinished,   // the job has all its steps: not applied
  kVetoed,     // sync: part of a step that was skipped, for what another shard or worker found not finite
};

// shard -> worker: one bucket of parameters, all of one version; payload = its elements as float32.
struct Parameters {
  BucketId bucket;
  Step version;  // the shard's; at shard 0 the global step
  PushOutcome outcome = PushOutcome::kNone;
  bool last = false;      // of this answer
  bool finished = false;  // train.steps is reached: stop after this
  RosterVersion roster;   // in force for the next step: sync leases of another one are void
  std::uint64_t pull_id = 0;
  Sequence acknowledged;  // cumulative: frames up to here are applied or staged, their credits are back
  Step clock;             // answers a pull that begins: the worker's from now on, not behind the slowest of the others
};

// shard -> worker: credits without parameters.
struct Acknowledge {
  Sequence acknowledged;
  PushOutcome outcome = PushOutcome::kNone;  // of the push whose last frame it acknowledges
  bool finished = false;
};

// shard -> pacer, sync: its staged set for a step covers the roster, or has at least `aggregate` members.
struct Staged {
  ShardId shard;
  Step step;
  RankSet members;  // ranks of `roster`
  bool nonfinite = false;
  RosterVersion roster;  // in force at the shard
  double norm2 = 0.0;    // squared norm of the weighted mean gradient over `members`, with clip = global_norm only
};

// pacer -> shards, sync: step `step` is the mean over `members`, in rank order. The roster was told before, by the
// order that made the shard or by PacerNews on this connection.
struct Commit {
  Step step;
  RosterVersion roster;  // that `members` are ranks of
  RankSet members;
  double scale = 1.0;  // of the mean gradient, from the global norm clip
  bool skip = false;   // not finite: count the step, apply nothing
};

// pacer -> shards: the roster changed, all steps are done (async, ssp), or the shard has just connected. In sync it is
// in the stream of commits, so that all shards change at the same place.
struct PacerNews {
  Roster roster;
  Step slowest_clock;  // ssp
  Step global_step;
  bool finished = false;
};

// worker -> shard, async and ssp: all pushes before it are in the checkpoint, none after it. The worker sends nothing
// more on this channel until it has MarkTaken.
struct Mark {
  std::uint64_t attempt = 0;
};

// shard -> worker: it has cut, or the attempt is given up.
struct MarkTaken {
  std::uint64_t attempt = 0;
};

// pacer -> shards, sync: cut now, between two commits of this stream.
struct Cut {
  std::uint64_t attempt = 0;
};

}  // namespace disttrain
