// The events that a shard's core gets and the actions that it returns. Events are given in the order in which they
// happened; actions are carried out in order, each before the next. Metadata only: tensor bytes stay in the store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/messages/checkpoint.h"
#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain::psd {

// One connection of one worker to this shard. The shell numbers connections from 1 and never uses a number again.
using ChannelId = StrongId<struct ChannelIdTag, std::uint64_t>;
// Index of the memory made for one member of the roster, 0 <= value < members expected at the job's start.
using Place = StrongId<struct PlaceTag, std::uint32_t>;

// Where the payload of a push frame is received.
struct Landing {
  enum class Kind : std::uint8_t {
    kFrame,    // async, ssp: the member's frame buffer, free again when the event has been handled
    kStaging,  // sync: the bucket's place in one of the member's pushes in flight
    kSpare,    // sync: buffer for a frame that changes nothing (duplicate, late); its bytes are dropped
  };
  Kind kind = Kind::kFrame;
  Place place;
  std::uint32_t push = 0;  // kStaging: which of the pushes in flight, 0 .. train.pipeline

  bool operator==(const Landing&) const = default;
};

// --- Events

// A worker with the right job, generation and token asks for a channel. Answered by Admit or Refuse.
struct ChannelOpened {
  ChannelId channel;
  Member worker;
};

// The channel was lost, or closed by the worker. Not sent for channels that the core closed.
struct ChannelClosed {
  ChannelId channel;
};

// A whole push frame, received where landing() said.
struct PushArrived {
  ChannelId channel;
  Sequence sequence;
  Push push;
  std::uint64_t payload_bytes = 0;
  bool nonfinite = false;  // the payload has a NaN or an infinity
};

struct PullArrived {
  ChannelId channel;
  Pull pull;
};

// Answer to MeasureNorm, in the same turn.
struct NormMeasured {
  double norm2 = 0.0;
};

// To the pacer, from the other shards.
struct StagedArrived {
  Staged staged;
};

// To the other shards, from the pacer.
struct CommitArrived {
  Commit commit;
};
struct NewsArrived {
  PacerNews news;
};

// A link between the pacer and another shard is open, for the first time or after one that carried no message. The
// pacer answers with SendNews; the other shard with SendStaged, if it has reported the open step.
struct PeerOpened {
  ShardId peer;
};

// To the pacer, from the chief. Answered by RosterTaken.
struct RosterSet {
  Roster roster;
};

// From the chief. Answered by Fenced.
struct Fence {
  Member worker;
};

// A checkpoint: the shell has made the files of this attempt, and the memory for a copy is free.
struct AttemptPrepared {
  std::uint64_t attempt = 0;
  bool holds = false;  // after the cut nothing is applied, until the attempt is abandoned or another one is prepared
};
// Abandons this attempt and all earlier ones.
struct AttemptAbandoned {
  std::uint64_t attempt = 0;
};
// To the pacer, sync: cut at this step, or now if this step has passed.
struct CutOrdered {
  std::uint64_t attempt = 0;
  Step at;
};
// To the other shards, sync: from the pacer, between two commits.
struct CutArrived {
  Cut cut;
};
// async, ssp: from a worker.
struct MarkArrived {
  ChannelId channel;
  Mark mark;
};
// Sent now and then. Workers that have sent their marks wait for the other workers at most this long, even while the
// chief is away. Then the shard gives the attempt up (MarksGivenUp).
struct MarksAwaited {
  Duration longest{};
};

using Event = std::variant<ChannelOpened, ChannelClosed, PushArrived, PullArrived, NormMeasured, StagedArrived,
                           CommitArrived, NewsArrived, PeerOpened, RosterSet, Fence, AttemptPrepared, AttemptAbandoned,
                           CutOrdered, CutArrived, MarkArrived, MarksAwaited>;

// --- Actions

struct Admit {
  ChannelId channel;
  Sequence last_sequence;  // the worker continues with the next sequence number
};

struct Refuse {
  ChannelId channel;
  ErrorCode code = ErrorCode::kTemporary;
  std::string reason;
};

// The peer broke a rule, was replaced or left the roster. The core takes nothing more from it.
struct CloseChannel {
  ChannelId channel;
  std::string reason;
};

// One use of the update rule.
struct UpdateAt {
  std::uint64_t count = 0;  // updates before this one, at this shard
  double learning_rate = 0.0;
  double state_weight = 1.0;  // variables of kind state move by this fraction towards the pushed value
};

// Update the bucket with the gradient at `landing`.
struct Apply {
  Landing landing;
  BucketId bucket;
  UpdateAt at;
};

struct SumTerm {
  Landing landing;
  std::uint32_t examples = 0;  // its weight, > 0
};

// sum(examples_i * gradient_i) / sum(examples_i) in the order of `terms`, times `scale`.
struct SumPlan {
  std::vector<SumTerm> terms;
  double scale = 1.0;
  UpdateAt at;
  bool is_measured = false;  // the newest MeasureNorm was of this plan, and nothing was staged in its places since
};

// Update the bucket with the plan's mean. The buckets of a step share one plan; the last of them releases it.
struct SumAndApply {
  BucketId bucket;
  std::shared_ptr<const SumPlan> plan;
};

// Answered by NormMeasured: the squared norm of the plan's mean over the shard's buckets. The store keeps the sum for
// SumAndApply.
struct MeasureNorm {
  std::shared_ptr<const SumPlan> plan;
};

// One bucket of parameters as they are now.
struct Reply {
  ChannelId channel;
  Parameters message;
};

struct SendAcknowledge {
  ChannelId channel;
  Acknowledge message;
};

// To the pacer.
struct SendStaged {
  Staged message;
};

// From the pacer to each other shard.
struct SendCommit {
  Commit message;
};
struct SendNews {
  PacerNews message;
};

struct SendMarkTaken {
  ChannelId channel;
  MarkTaken message;
};
// From the pacer to each other shard.
struct SendCut {
  Cut message;
};

// The checkpoint consists of the parameters and slots as they are now.
struct CopyForCheckpoint {
  std::uint64_t attempt = 0;
  ShardEntry entry;
  std::optional<PacerReport> pacer;
  Duration parked{};  // time since the first mark; async, ssp
};

// Some workers' marks are missing. The shard releases the workers that have sent theirs.
struct MarksGivenUp {
  std::uint64_t attempt = 0;
};

struct Fenced {
  Member worker;
  Sequence last_sequence;
  Step last_clock;
};

struct RosterTaken {
  RosterVersion version;
  Step step;
  PacerReport pacer;
};

// Pacer: report to the chief at once (an epoch is complete, or the last step is done).
struct ReportNow {};

// Pacer, with ShardOptions::tells_visits: a step was counted, with the records that it visited. Comes before every
// answer, report and copy that includes the step.
struct Visit {
  TaskId worker;
  std::uint32_t epoch = 0;
  Positions positions;
};
struct StepCounted {
  Step step;
  std::vector<Visit> visits;
};

// The job can't continue at this shard. The core ignores later events.
struct FailJob {
  ErrorCode code = ErrorCode::kFailed;
  std::string reason;
};

using Action = std::variant<Admit, Refuse, CloseChannel, Apply, SumAndApply, MeasureNorm, Reply, SendAcknowledge,
                            SendStaged, SendCommit, SendNews, SendMarkTaken, SendCut, CopyForCheckpoint, MarksGivenUp,
                            Fenced, RosterTaken, ReportNow, StepCounted, FailJob>;
using Actions = std::vector<Action>;

}  // namespace disttrain::psd
