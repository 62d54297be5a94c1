// Messages between workers and shards (channels) and between shards and their pacer. A frame's tensor bytes are its
// payload and are not part of these; job, generation and sequence are in the frame's header.
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

// What a push frame asks for. kBucket streams large models: each bucket is sent back as soon as it is applied.
enum class Want : std::uint8_t { kNothing, kBucket, kAll };

// worker -> shard: one bucket of gradients; payload = its elements as float32, or nothing if `skipped`.
// A push is all frames of one step on one channel; its last frame has `last`. The fields from `examples` on are valid
// on the last frame only.
struct Push {
  BucketId bucket;
  Step clock;         // the worker's step, from 1; sync: the step that this gradient is for
  Step pull_version;  // the shard's version in the parameters that the gradient was computed from
  Want want = Want::kNothing;
  bool last = false;
  bool skipped = false;  // the loss wasn't finite: nothing is applied, but the step counts and its records are visited
  std::uint32_t examples = 0;
  float loss = std::numeric_limits<float>::quiet_NaN();
  LeaseId lease;  // 0 with sharding = "none"
  std::uint32_t epoch = 0;
  Positions visited;     // positions of the epoch, at most a batch's worth
  RosterVersion roster;  // sync with leases: the roster to which the records were lent; void under any other
  // Last frame: the worker pushes no more, so ssp no longer waits for it. A worker that learns too late that it has
  // pushed for the last time sends an empty push: no payload, examples 0, last and final. A worker that waits for a
  // lease does so too; it is active again when it next begins (Pull::begins).
  bool final = false;
};

// worker -> shard: asks for parameters without a push: first step, joining workers, evaluation.
struct Pull {
  std::uint64_t id = 0;  // repeated in the answer
  bool begins = false;   // ssp: the worker will push what it computes from the answer: the others wait for it now
  Step clock{};          // begins: clock of its last push
};

enum class PushOutcome : std::uint8_t {
  kNone,       // answers a pull
  kApplied,    // or, in sync, part of the committed step
  kSkipped,    // not finite in this worker's push
  kLate,       // sync: the step was committed without it, or its roster is gone; dropped
  kDuplicate,  // the frame was taken before
  kFinished,   // the job has done all its steps: not applied
  kVetoed,     // sync: part of a skipped step, because of a non-finite value at another shard or worker
};

// shard -> worker: one bucket of parameters, all of one version; payload = its elements as float32.
struct Parameters {
  BucketId bucket;
  Step version;  // the shard's version; at shard 0 the global step
  PushOutcome outcome = PushOutcome::kNone;
  bool last = false;      // last frame of this answer
  bool finished = false;  // train.steps is reached: stop after this answer
  RosterVersion roster;   // in force for the next step: sync leases of another roster are void
  std::uint64_t pull_id = 0;
  Sequence acknowledged;  // cumulative: frames up to here are applied or staged, and their credits are returned
  Step clock;  // answers a pull that begins: the worker's clock from now on, at least the slowest of the others
};

// shard -> worker: returns credits without parameters.
struct Acknowledge {
  Sequence acknowledged;
  PushOutcome outcome = PushOutcome::kNone;  // outcome of the push whose last frame it acknowledges
  bool finished = false;
};

// shard -> pacer, sync: the set staged for a step covers the roster or has at least `aggregate` members.
struct Staged {
  ShardId shard;
  Step step;
  RankSet members;  // ranks of `roster`
  bool nonfinite = false;
  RosterVersion roster;  // in force at the shard
  double norm2 = 0.0;    // only with clip = global_norm: squared norm of the weighted mean gradient over `members`
};

// pacer -> shards, sync: commit step `step` as the mean over `members`, in rank order. The shard has got the roster
// before, with the order that made it or in PacerNews on this connection.
struct Commit {
  Step step;
  RosterVersion roster;  // the roster of the ranks in `members`
  RankSet members;
  double scale = 1.0;  // factor on the mean gradient, from clipping the global norm
  bool skip = false;   // not finite: count the step and apply nothing
};

// pacer -> shards: the roster changed, all steps are done (async, ssp), or the shard has just connected. In sync this
// message is in the stream of commits, so that all shards change the roster at the same step.
struct PacerNews {
  Roster roster;
  Step slowest_clock;  // ssp
  Step global_step;
  bool finished = false;
};

// worker -> shard, async and ssp: the pushes before the mark are in the checkpoint, later ones aren't. The worker sends
// nothing more on this channel until it gets MarkTaken.
struct Mark {
  std::uint64_t attempt = 0;
};

// shard -> worker: the cut is taken, or the attempt is abandoned.
struct MarkTaken {
  std::uint64_t attempt = 0;
};

// pacer -> shards, sync: cut now, between two commits of this stream.
struct Cut {
  std::uint64_t attempt = 0;
};

}  // namespace disttrain
