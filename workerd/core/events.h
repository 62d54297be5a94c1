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

// A requested batch. Tickets start at 1 and grow with each request.
using BatchTicket = StrongId<struct BatchTicketTag, std::uint64_t>;

// The records of a batch, in this order: positions of the epoch's permutation.
struct BatchOrder {
  BatchTicket ticket;
  std::uint32_t epoch = 0;
  Positions positions;
  std::uint64_t examples = 0;  // sum of the positions' lengths; 0 at the end of a synchronous block
  LeaseId lease;               // 0 with sharding = "none"
  Step step;                   // sync with leases: the step it is for, else 0
};

// Everything that a core must know of its job; fixed for the core's life.
struct JobFacts {
  Member self;
  JobConfig config;
  Layout layout;
  Roster roster;
  std::vector<std::string> shard_names;  // for messages: "shard 1 (ps/0 at host:7110)"
  std::uint64_t train_records = 0;
  std::uint32_t credits = 4;  // push frames outstanding per channel
  bool evaluates = false;     // runs the evaluations during training
  Step clock;                 // this worker's own steps in earlier generations
};

// ---- events ----

struct ChannelOpened {
  ShardId shard;
  Sequence last_sequence;  // last frame that the shard has taken from this incarnation
};
struct ChannelLost {
  ShardId shard;
  std::string reason;
  Duration lasts{};  // time since the shard's ps was last heard
};
// A channel can't be opened, because the shard's ps doesn't answer.
struct PsUnreachable {
  ShardId shard;
  std::string reason;
  Duration lasts{};
};
// After PsUnreachable or a lost channel: the shard's ps answers.
struct PsReached {
  ShardId shard;
};
struct Start {};
struct LeaseGranted {
  LeaseGrant grant;
};
struct ChiefAway {};      // no control connection: until it returns, no wait counts against anybody
struct ChiefReturned {};  // a new control connection: requests may be lost
struct BatchReady {
  BatchTicket ticket;
};
// Gradients of flat elements [0, end) are final. Only between Compute and Computed.
struct RangesReady {
  std::uint64_t end = 0;
};
struct Computed {
  float loss = 0.0F;
};
struct ParametersArrived {
  ShardId shard;
  Parameters parameters;
};
struct AcknowledgeArrived {
  ShardId shard;
  Acknowledge acknowledge;
};
// A checkpoint needs a boundary: between two pushes, on every channel.
struct MarkRequested {
  std::uint64_t attempt = 0;
};
struct MarkTakenArrived {
  ShardId shard;
  MarkTaken taken;
};
// The cluster waits for a task: no new step begins, and no wait counts as a stall.
struct Paused {
  bool paused = false;
};
struct StopRequested {};
struct BecomesEvaluator {};
struct EvaluateRequested {};  // the final evaluation
struct EvaluationDone {
  double loss_sum = 0.0;
  std::uint64_t correct = 0;
  std::uint64_t examples = 0;
  std::uint64_t parameters_hash = 0;
};
// Something outside the core that the step needs has failed: data, engine, a refused channel.
struct Broken {
  Error error;
};
struct Tick {};

using Event = std::variant<ChannelOpened, ChannelLost, PsUnreachable, PsReached, Start, LeaseGranted, ChiefAway,
                           ChiefReturned, BatchReady, RangesReady, Computed, ParametersArrived, AcknowledgeArrived,
                           MarkRequested, MarkTakenArrived, Paused, StopRequested, BecomesEvaluator, EvaluateRequested,
                           EvaluationDone, Broken, Tick>;

// ---- actions, carried out in order ----

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
// Payload: the bucket's part of gradient buffer `gradients`, which doesn't change until the frame is acknowledged.
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
// Answered by Computed; then the batch is no longer used.
struct Compute {
  BatchTicket batch;
  std::uint64_t step = 0;  // for the seed, with `rank`
  Rank rank;
  std::uint32_t parameters = 0;  // index of the buffer to use; likewise `gradients`
  std::uint32_t gradients = 0;
  bool early = false;      // send RangesReady during the computation
  double clip_norm = 0.0;  // > 0: scale all gradients down to this norm
};
struct RunEvaluation {
  std::uint32_t parameters = 0;
};
struct ReportEvaluated {
  Evaluated evaluated;  // the shell fills in job and generation
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
// The job can't go on at this worker. No other action follows.
struct Fail {
  Error error;
};

using Action = std::variant<ReportOpened, RequestLease, RequestBatch, DropBatch, SendPull, SendPush, SendMark, Compute,
                            RunEvaluation, ReportEvaluated, ReportFinished, Accuse, Fail>;
using Actions = std::vector<Action>;

}  // namespace disttrain::workerd
