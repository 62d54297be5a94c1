// Messages on channels (between a worker and a shard) and between a shard and its pacer. The values of tensors aren't
// in these messages; they are the payload of a frame. The job, generation and sequence are in the frame's header.
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

// The answer that a push frame asks for: no parameters, only its own bucket, or all buckets of the shard. kBucket is
// for large models, because the shard can send each bucket as soon as it has applied it.
enum class Want : std::uint8_t { kNothing, kBucket, kAll };

// Worker -> shard: the gradient of one bucket. The payload is its words (common/layout.h), or nothing if `skipped`. A
// push is all frames of one step on one channel. `last` marks its last frame, and the fields from `examples` on are
// valid only there.
struct Push {
  BucketId bucket;
  Step clock;         // number of the worker's own step, from 1; sync: the step that this gradient is for
  Step pull_version;  // version of the shard's parameters from which the gradient was computed
  Want want = Want::kNothing;
  bool last = false;
  // the loss wasn't finite: the shard applies nothing, but the step counts and its records count as visited
  bool skipped = false;
  std::uint32_t examples = 0;
  float loss = std::numeric_limits<float>::quiet_NaN();
  LeaseId lease;  // 0 with sharding = "none"
  std::uint32_t epoch = 0;
  Positions visited;  // positions of the batch in the epoch
  // sync with leases: the roster to which the records were lent; under any other roster the push is void
  RosterVersion roster;
  // The worker pushes nothing after this frame, so in ssp the others no longer wait for it. If the worker learns too
  // late that its last push was the final one, it sends an empty push: no payload, 0 examples, `last` and `final`. In
  // ssp a worker also sends such an empty push before it waits for a lease. It becomes active again with Pull::begins.
  bool final = false;
  // The payload isn't a gradient but the first values of the bucket (see Acknowledge::wants_values). The shard takes
  // them as they are, and they count as no step. Of the other fields only `bucket` and `last` are valid.
  bool initial = false;
};

// Worker -> shard: asks for parameters without a push. Used before the first step, when a worker joins, and for an
// evaluation.
struct Pull {
  std::uint64_t id = 0;  // the answer repeats this number
  // ssp: the worker will push a gradient computed from the answer, so the others wait for it from now on
  bool begins = false;
  Step clock{};           // with `begins`: the number of the worker's last pushed step
  bool averages = false;  // for an evaluation: the answer has the moving averages (evaluate.average)
};

enum class PushOutcome : std::uint8_t {
  kNone,       // there was no push; this answers a pull
  kApplied,    // the push was applied; in sync, as part of the committed step
  kSkipped,    // a value in this worker's push wasn't finite
  kLate,       // sync: dropped, because its step was committed without it, or because it was made for an older roster
  kDuplicate,  // the shard has taken this frame before
  kFinished,   // not applied, because the job has done all its steps
  // sync: a value at another shard or worker wasn't finite, so the whole step was skipped. With kSkipped for all, the
  // alert NonFiniteLoss would name every worker.
  kVetoed,
};

// Shard -> worker: one bucket of parameters. The payload is its words, all of one version.
struct Parameters {
  BucketId bucket;
  Step version;  // version of the shard; the version of shard 0 is the global step
  PushOutcome outcome = PushOutcome::kNone;
  bool last = false;      // last frame of this answer
  bool finished = false;  // the job has done all its steps: the worker stops after this answer
  RosterVersion roster;   // the roster in force for the next step; sync: leases for any other roster are void
  std::uint64_t pull_id = 0;
  Sequence acknowledged;  // the shard has applied or staged all frames up to this one, and gives their credits back
  // answer to a pull with `begins`: the worker's step number from now on; at least the lowest one of the other workers
  Step clock;
  bool averages = false;  // answer to a pull with `averages`: the payload has the moving averages
};

// Shard -> worker: gives credits back without sending parameters.
struct Acknowledge {
  Sequence acknowledged;
  // if the acknowledged frame is the last of a push: the outcome of that push
  PushOutcome outcome = PushOutcome::kNone;
  bool finished = false;
  // The worker's pull waits, because the shard has no values yet and the model brings its own
  // (ModelSpec::brings_values). The worker now sends the values of all buckets of the shard, as frames with
  // Push::initial. Only the worker with the lowest rank is asked. When the shard has them, it answers all pulls that
  // wait.
  bool wants_values = false;
};

// Shard -> pacer, sync: the pushes that the shard has staged for a step cover the whole roster, or there are at least
// `aggregate` of them.
struct Staged {
  ShardId shard;
  Step step;
  RankSet members;  // the ranks, in `roster`, of the workers whose pushes are staged
  bool nonfinite = false;
  RosterVersion roster;  // the roster in force at the shard
  double norm2 = 0.0;  // only with clip = global_norm: the squared norm of the weighted mean of the members' gradients
};

// Pacer -> shards, sync: commit this step with the mean of the members' gradients, summed in rank order. The shard
// knows the roster already: it got the roster in CreateShards, or in PacerNews on this connection.
struct Commit {
  Step step;
  RosterVersion roster;  // the roster to which the ranks in `members` refer
  RankSet members;
  double scale = 1.0;  // factor on the mean gradient, from clipping by the global norm
  bool skip = false;   // a value wasn't finite: count the step and apply nothing
};

// Pacer -> shards: the roster has changed, or all steps are done (async, ssp), or the shard has just connected. In sync
// this message is in the stream of commits, so that all shards change the roster at the same step.
struct PacerNews {
  Roster roster;
  bool finished = false;
};

// Worker -> shard, async and ssp: the checkpoint contains the worker's pushes before the mark, and none after it. The
// worker sends nothing more on this channel until it gets MarkTaken.
struct Mark {
  std::uint64_t attempt = 0;
};

// Shard -> worker: the shard has taken the cut, or the attempt was abandoned.
struct MarkTaken {
  std::uint64_t attempt = 0;
};

// Pacer -> shards, sync: take the cut now. This message comes between two commits in the stream of commits.
struct Cut {
  std::uint64_t attempt = 0;
};

}  // namespace disttrain
