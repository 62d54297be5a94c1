// The events that a shard's core takes and the actions that it returns. The caller passes the events in the order in
// which they happened, and carries out the actions in the order in which the core returned them. Events and actions
// hold only metadata, because the tensor bytes stay in the store (shards/store).
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

namespace disttrain::shards {

// One connection of one worker to this shard. The shell numbers the connections 1, 2, 3 and so on, and never reuses a
// number.
using ChannelId = StrongId<struct ChannelIdTag, std::uint64_t>;
// The number of a memory area for the pushes of one worker. A shard has a fixed number of such areas, and each worker
// in the roster has one of them.
using Place = StrongId<struct PlaceTag, std::uint32_t>;

// The buffer that receives the payload of a push frame.
struct Landing {
  enum class Kind : std::uint8_t {
    kFrame,    // async, ssp: the worker's frame buffer; it is free again when the core has handled the frame
    kStaging,  // sync: the memory in which this bucket of the push waits for the commit
    kSpare,    // sync: a buffer for a frame that changes nothing (a duplicate or a late frame)
  };
  Kind kind = Kind::kFrame;
  Place place;
  std::uint32_t push = 0;  // kStaging: the index of the push among the worker's waiting pushes, 0 .. train.pipeline

  bool operator==(const Landing&) const = default;
};

// --- Events

// A worker asks for a channel. The ps has already checked the worker's job, generation and token. The core answers with
// Admit or Refuse.
struct ChannelOpened {
  ChannelId channel;
  Member worker;
};

// The channel's connection broke, or the worker closed it. This event doesn't come for a channel that the core closed.
struct ChannelClosed {
  ChannelId channel;
};

// A whole push frame has arrived. Its payload is in the buffer that ShardCore::landing() chose.
struct PushArrived {
  ChannelId channel;
  Sequence sequence;
  Push push;
  std::uint64_t payload_bytes = 0;
  // True: the payload has a NaN or an infinity, or an update with it would give one (async, ssp).
  bool nonfinite = false;
  double largest = 0.0;  // the largest magnitude in the payload
};

struct PullArrived {
  ChannelId channel;
  Pull pull;
};

// The store's answer to the action JudgeStep. No other event comes between this action and the answer.
struct StepJudged {
  double norm2 = 0.0;  // 0 without JudgeStep::clips
  bool finite = true;  // false: the step would give parameters or slots that aren't finite; true with JudgeStep::clips
};

// An update has given parameters or slots that aren't finite, although the store didn't foresee it. The parameters
// can't be used any more, so the core fails the job.
struct UpdateFailed {
  BucketId bucket;
  bool was_lent = false;  // a worker could have changed the gradients after the shard had checked them
};

// Another shard tells the pacer which pushes it has staged.
struct StagedArrived {
  Staged staged;
};

// The pacer's two messages to the other shards: a commit, and news of the roster and of the job's last step.
struct CommitArrived {
  Commit commit;
};
struct NewsArrived {
  PacerNews news;
};

// A link between the pacer and another shard has opened, or has opened again after a break. Both ends get this event.
// The pacer answers with SendNews. The other shard answers with SendStaged if it has already reported its staged pushes
// for the open step (the next step to be committed).
struct PeerOpened {
  ShardId peer;
};

// The chief gives the pacer a new roster. The pacer answers with RosterTaken.
struct RosterSet {
  Roster roster;
  bool ends = false;  // SetRoster::ends: in sync, the pacer commits no step from now on
};

// The chief orders the shard to take nothing more from this worker. The core answers with Fenced.
struct Fence {
  Member worker;
};

// The ps has made the files of this checkpoint attempt, so the shard may take its copy.
struct AttemptPrepared {
  std::uint64_t attempt = 0;
  // If true, the shard applies nothing after the cut, until the attempt is abandoned or a newer attempt is prepared.
  bool holds = false;
};
// The chief abandons this checkpoint attempt and all earlier ones.
struct AttemptAbandoned {
  std::uint64_t attempt = 0;
};
// sync, only at the pacer: the chief orders the cut when step `at` is committed, or at once if that step is already
// committed.
struct CutOrdered {
  std::uint64_t attempt = 0;
  Step at;
};
// sync, only at the other shards: the pacer orders the cut now, between two commits.
struct CutArrived {
  Cut cut;
};
// async, ssp: a worker sends its mark. Its pushes before the mark belong to the checkpoint, later pushes don't.
struct MarkArrived {
  ChannelId channel;
  Mark mark;
};
// The shell sends this event before each heartbeat. When the first mark of an attempt is older than `longest` and other
// workers' marks are still missing, the shard gives up the attempt (MarksGivenUp). So workers never wait for each other
// much longer than `longest`, even while the chief is away.
struct MarksAwaited {
  Duration longest{};
};

using Event = std::variant<ChannelOpened, ChannelClosed, PushArrived, PullArrived, StepJudged, UpdateFailed,
                           StagedArrived, CommitArrived, NewsArrived, PeerOpened, RosterSet, Fence, AttemptPrepared,
                           AttemptAbandoned, CutOrdered, CutArrived, MarkArrived, MarksAwaited>;

// --- Actions

struct Admit {
  ChannelId channel;
  Sequence last_sequence;  // the last frame that the shard took; the worker continues with the next number
};

struct Refuse {
  ChannelId channel;
  ErrorCode code = ErrorCode::kTemporary;
  std::string reason;
};

// Closes a channel because its worker broke a rule, opened another channel, was fenced or left the roster. The core
// ignores later frames of this channel.
struct CloseChannel {
  ChannelId channel;
  std::string reason;
};

// The arguments of one update of parameters.
struct UpdateAt {
  std::uint64_t count = 0;  // number of updates of this shard before this one
  double learning_rate = 0.0;
  // State (batch norm's statistics) moves by this fraction towards the pushed value; 0: it doesn't change.
  double state_weight = 1.0;
};

// Updates the bucket with the gradient in the buffer `landing`.
struct Apply {
  Landing landing;
  BucketId bucket;
  UpdateAt at;
};

// Sets the bucket's parameters to the values in the buffer `landing`.
struct SetParameters {
  Landing landing;
  BucketId bucket;
};

struct SumTerm {
  Landing landing;
  std::uint32_t examples = 0;  // its weight, > 0
  double largest = 0.0;        // the largest magnitude in the push
};

// How to compute the mean gradient of a step in sync: sum(examples_i * gradient_i) / sum(examples_i) in the order of
// `terms`, times `scale`.
struct SumPlan {
  std::vector<SumTerm> terms;
  double scale = 1.0;
  UpdateAt at;
  bool is_measured = false;  // true: the store still has this plan's sum, from the newest JudgeStep
};

// Updates the bucket with the plan's mean gradient. All buckets of a step share one plan.
struct SumAndApply {
  BucketId bucket;
  std::shared_ptr<const SumPlan> plan;
};

// Finds out whether the plan's update would give only finite numbers, without changing anything. If `clips` is true,
// computes the squared norm of the plan's mean gradient over all buckets of the shard instead, and keeps the sum for
// SumAndApply: the scale, and so the update, isn't known yet. The store answers with StepJudged.
struct JudgeStep {
  std::shared_ptr<const SumPlan> plan;
  bool clips = false;
};

// For update rules that need norms of whole variables (UpdateRule::is_by_variable()). Computes the plan's mean gradient
// of all buckets of the shard, and the norms. It comes right before the first SumAndApply of the same plan, and those
// then only change the parameters.
struct PrepareUpdate {
  std::shared_ptr<const SumPlan> plan;
};

// Answers a worker with one bucket of parameters as they are now; if Parameters::averages is true, with their averages.
struct Reply {
  ChannelId channel;
  Parameters message;
};

struct SendAcknowledge {
  ChannelId channel;
  Acknowledge message;
};

// Tells the pacer which pushes this shard has staged.
struct SendStaged {
  Staged message;
};

// The pacer sends every other shard a commit, or news of the roster and of the job's last step.
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
// sync: the pacer orders every other shard to cut.
struct SendCut {
  Cut message;
};

// Copies the parameters and slots as they are now: this copy is the shard's part of the checkpoint.
struct CopyForCheckpoint {
  std::uint64_t attempt = 0;
  ShardEntry entry;
  std::optional<PacerReport> pacer;
  Duration parked{};  // async, ssp: the time from the attempt's first mark until now
};

// The shard gives up the checkpoint attempt, because marks of some workers are missing, or because no worker has given
// it its first values yet. It also answers the workers that have sent their marks, so that they go on.
struct MarksGivenUp {
  std::uint64_t attempt = 0;
  bool lacks_values = false;
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
  std::vector<OwnBatches> batches{};
};

// The pacer must report to the chief at once, because an epoch is complete or the last step is done.
struct ReportNow {};

// The records that one push of a step visited.
struct Visit {
  TaskId worker;
  std::uint32_t epoch = 0;
  Positions positions;
};
// Tells which records a counted step visited. Only the pacer returns this action, and only with
// ShardOptions::tells_visits. It comes before every answer, report and copy that includes the step.
struct StepCounted {
  Step step;
  std::vector<Visit> visits;
};

// The job can't continue at this shard. The core ignores all later events.
struct FailJob {
  ErrorCode code = ErrorCode::kFailed;
  std::string reason;
};

using Action = std::variant<Admit, Refuse, CloseChannel, Apply, SetParameters, SumAndApply, JudgeStep, PrepareUpdate,
                            Reply, SendAcknowledge, SendStaged, SendCommit, SendNews, SendMarkTaken, SendCut,
                            CopyForCheckpoint, MarksGivenUp, Fenced, RosterTaken, ReportNow, StepCounted, FailJob>;
using Actions = std::vector<Action>;

}  // namespace disttrain::shards
