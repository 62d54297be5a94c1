// The events that a WorkerCore gets and the actions that it returns.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/config/job_config.h"
#include "common/layout.h"
#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/time.h"

namespace disttrain::workerd {

// The number of a request for a batch: 1 for the first request, 2 for the second and so on.
using BatchTicket = StrongId<struct BatchTicketTag, std::uint64_t>;

// A request for a batch. It names the records by their positions in the epoch's permutation, in the order of the batch.
struct BatchOrder {
  BatchTicket ticket;
  std::uint32_t epoch = 0;
  Positions positions;
  std::uint64_t examples = 0;  // number of records; in sync it may be 0 at the end of a lease
  LeaseId lease;               // 0 with sharding = "none"
  Step step;                   // sync with leases: the step that the batch is for; otherwise 0
};

// Everything that a core must know about its job. It doesn't change as long as the core exists.
struct JobFacts {
  Member self;
  JobConfig config;
  Layout layout;
  Roster roster;
  std::vector<std::string> shard_names;  // for error texts; an example of a name: "shard 1 (ps/0 at host:7110)"
  std::uint64_t train_records = 0;
  std::uint32_t credits = 4;  // maximum number of unacknowledged push frames per channel
  bool evaluates = false;     // this worker runs the evaluations during training
  Step clock;                 // start value of the worker's clock (OpenJob::clock)
  std::uint64_t batches = 0;  // sharding = "none": number of batches that this worker did before (OpenJob::batches)
  bool begins_early = false;  // the engine can begin a step before all of its parameters are there (Compute)
};

// ---- events ----

struct ChannelOpened {
  ShardId shard;
  Sequence last_sequence;  // the last frame that the shard has taken from this incarnation of the worker
};
struct ChannelLost {
  ShardId shard;
  std::string reason;
  Duration lasts{};  // time since the shard's ps last sent anything
};
// A channel can't be opened because the shard's ps doesn't answer.
struct PsUnreachable {
  ShardId shard;
  std::string reason;
  Duration lasts{};
};
// Comes after PsUnreachable or ChannelLost: the shard's ps answers again.
struct PsReached {
  ShardId shard;
};
struct Start {};
struct LeaseGranted {
  LeaseGrant grant;
};
// The connection to the chief is lost. No time counts towards job.stall_timeout until ChiefReturned.
struct ChiefAway {};
// There is a new connection to the chief. Requests that were sent on the old connection may be lost.
struct ChiefReturned {};
struct BatchReady {
  BatchTicket ticket;
};
// The gradients of flat elements [0, end) are final, and the computation doesn't read the parameters of these elements
// any more. The shell sends this only between Compute and Computed.
struct RangesReady {
  std::uint64_t end = 0;
};
struct Computed {
  float loss = 0.0F;
  Duration waited{};  // how long the engine waited for parameters that arrived during the computation
};
struct ParametersArrived {
  ShardId shard;
  Parameters parameters;
};
struct AcknowledgeArrived {
  ShardId shard;
  Acknowledge acknowledge;
};
// The chief asks for the marks of a checkpoint attempt: one on every channel, between two pushes.
struct MarkRequested {
  std::uint64_t attempt = 0;
};
// The shell has written the model's initial values to the gradient buffer that LoadValues names.
struct ValuesLoaded {};
struct MarkTakenArrived {
  ShardId shard;
  MarkTaken taken;
};
// The chief pauses the job or ends the pause. It pauses a job, for example, while a ps is away. During a pause the
// worker begins no new step, and no time counts towards job.stall_timeout.
struct Paused {
  bool paused = false;
};
struct StopRequested {};
struct BecomesEvaluator {};
struct EvaluateRequested {};  // the chief asks for the final evaluation
struct EvaluationDone {
  double loss_sum = 0.0;
  std::uint64_t examples = 0;
  std::vector<MetricValue> metrics;
  std::uint64_t parameters_hash = 0;
  std::string notice{};  // Evaluated::notice
};
// The worker can't go on: data can't be read, the engine failed, or a ps refused a channel.
struct Broken {
  Error error;
};
struct Tick {};

using Event = std::variant<ChannelOpened, ChannelLost, PsUnreachable, PsReached, Start, LeaseGranted, ChiefAway,
                           ChiefReturned, BatchReady, RangesReady, Computed, ParametersArrived, AcknowledgeArrived,
                           ValuesLoaded, MarkRequested, MarkTakenArrived, Paused, StopRequested, BecomesEvaluator,
                           EvaluateRequested, EvaluationDone, Broken, Tick>;

// ---- actions: the shell carries them out in order ----

struct ReportOpened {};  // all channels are open
struct RequestLease {
  double records_per_second = 0.0;
};
struct RequestBatch {
  BatchOrder order;
};
struct DropBatch {
  BatchTicket ticket;
};
struct SendPull {
  ShardId shard;
  Pull pull;
};
// Sends a frame. `gradients` is the index of a gradient buffer. If `payload` is true, the frame carries the gradients
// of push.bucket from this buffer. The core doesn't reuse the buffer before the frame is acknowledged.
struct SendPush {
  ShardId shard;
  Sequence sequence;
  Push push;
  std::uint32_t gradients = 0;
  bool payload = true;
};
struct SendMark {
  ShardId shard;
  Mark mark;
};
// Writes the model's initial values to a gradient buffer, in the order of the layout. The shell answers with
// ValuesLoaded, later.
struct LoadValues {
  std::uint32_t gradients = 0;
};
// Computes the gradients of a batch. The shell answers with Computed; after that it may reuse the batch's memory.
//
// If JobFacts::begins_early, answers to the last push may still be under way, or even frames of it. The engine then
// must not read the parameters of a bucket in `awaited` before they have arrived (ParametersArrived), and must not
// write gradients before all of them have.
struct Compute {
  BatchTicket batch;
  std::uint64_t step = 0;  // `step` and `rank` are part of the random seed
  Rank rank;
  std::uint32_t parameters = 0;   // index of the parameter buffer to use
  std::uint32_t gradients = 0;    // index of the gradient buffer to use
  bool early = false;             // the shell must send RangesReady during the computation
  std::vector<BucketId> awaited;  // in no order
  double clip_norm = 0.0;         // if > 0: scale the gradients down if their norm is larger than this
};
// The parameters of this shard will be sent again, while the engine may already have read some of them. So the shell
// ends the computation and begins it again, and treats all buckets of the shard as not arrived. It keeps the batch.
struct Recompute {
  ShardId shard;
};
// Ends the computation, because its parameters won't come: the job has done its last step. The shell doesn't answer.
struct DropCompute {};
struct RunEvaluation {
  std::uint32_t parameters = 0;  // index of the parameter buffer to use
};
struct ReportEvaluated {
  Evaluated evaluated;  // without job and generation, which the shell fills in
};
struct ReportFinished {
  std::uint64_t steps = 0;
};
struct Accuse {
  ShardId shard;
  std::string reason;
  Duration lasts{};
  bool withdrawn = false;
};
// This worker can't go on with the job. The core returns no other action after this one.
struct Fail {
  Error error;
};

using Action =
    std::variant<ReportOpened, RequestLease, RequestBatch, DropBatch, SendPull, SendPush, SendMark, LoadValues, Compute,
                 Recompute, DropCompute, RunEvaluation, ReportEvaluated, ReportFinished, Accuse, Fail>;
using Actions = std::vector<Action>;

}  // namespace disttrain::workerd
