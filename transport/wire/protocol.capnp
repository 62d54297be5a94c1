# The protocol's book: every message between the tasks of a disttrain cluster, with its story.
#
# A frame (frame.h) carries one message in its control part, or a big one in its payload. The C++ values of the same
# names are in common/messages; codec.h turns one into the other and checks ranges.
#
# Versions: fields are added at the end, never renumbered or reused; a retired field keeps its line and its history. A
# reader of an older version skips fields that it doesn't know; a writer of an older version leaves them at their
# defaults. Version 1: everything below.
@0xd1577a1e0c0de001;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("disttrain::wire::schema");

# ---------------------------------------------------------------------------------------------- Pieces

enum Role { chief @0; ps @1; worker @2; }

# One process in its place. Another process in the same place has another incarnation.
struct Member {
  role @0 :Role;
  index @1 :UInt32;
  incarnation @2 :UInt64;
}

# The workers of a job in rank order.
struct Roster {
  version @0 :UInt64;
  members @1 :List(Member);
}

# The owner of a shard, and the address to dial.
struct Owner {
  ps @0 :Member;
  address @1 :Text;
}

# Half-open range of positions in an epoch's permutation of the records.
struct Interval {
  begin @0 :UInt64;
  end @1 :UInt64;
}

enum VariableKind { trainable @0; state @1; }
enum InitializerKind { zeros @0; normal @1; glorot @2; he @3; }

struct Variable {
  name @0 :Text;
  shape @1 :List(UInt64);
  kind @2 :VariableKind;
  initializer @3 :InitializerKind;
  scale @4 :Float64;
  fanIn @5 :UInt64;
  fanOut @6 :UInt64;
}

struct Model {
  variables @0 :List(Variable);  # in the order of a forward pass
  inputElements @1 :UInt64;
  classes @2 :UInt64;
}

struct Bucket {
  shard @0 :UInt32;
  flatBegin @1 :UInt64;
  shardBegin @2 :UInt64;
  elements @3 :UInt64;
}

# Where each element of each variable lives; fixed for a generation.
struct Layout {
  model @0 :Model;
  shards @1 :UInt32;
  variableBegins @2 :List(UInt64);
  buckets @3 :List(Bucket);
}

# ---------------------------------------------------------------------------------------------- A job's settings

# What job.toml says, with every default filled in, paths absolute, and the number of steps that follows from the epochs
# put in: the chief resolves it once, so that no task reads the text. common/config/job_config.h has meanings and units;
# the receiver checks the ranges again (common/config/reader/reader.h: check_ranges).

enum Placement { balanced @0; roundRobin @1; greedy @2; partitioned @3; }
enum Mode { async @0; sync @1; ssp @2; }
enum Activation { sigmoid @0; relu @1; tanh @2; gelu @3; }
enum Loss { softmaxCrossEntropy @0; mse @1; sigmoidCrossEntropy @2; }
enum Rule { sgd @0; momentum @1; nesterov @2; adagrad @3; rmsprop @4; adam @5; adamw @6; }
enum ScheduleKind { constant @0; step @1; exponential @2; polynomial @3; cosine @4; }
enum ClipKind { none @0; globalNorm @1; value @2; }
enum NonfiniteAction { skip @0; fail @1; }
enum Sharding { lease @0; none @1; }
enum DataFormat { idx @0; csv @1; npy @2; }
enum OnWorkerLoss { shrink @0; wait @1; }
enum Restore { newest @0; none @1; }
enum ShuffleKind { epoch @0; buffer @1; none @2; }

struct Initializer {
  kind @0 :InitializerKind;
  scale @1 :Float64;
}

struct NamePair {
  from @0 :Text;
  to @1 :Text;
}

struct JobSection {
  name @0 :Text;
  seed @1 :UInt64;
  shards @2 :UInt32;
  placement @3 :Placement;
  minWorkers @4 :UInt32;
  onWorkerLoss @5 :OnWorkerLoss;
  maxRestarts @6 :UInt32;
  restartWindow @7 :Int64;  # nanoseconds
  stallTimeout @8 :Int64;  # nanoseconds
}

struct ModelSection {
  builtin @0 :Text;
  layers @1 :List(UInt32);
  activation @2 :Activation;
  initializer @3 :Initializer;
  dropout @4 :Float64;
  loss @5 :Loss;
}

struct DataSection {
  format @0 :DataFormat;
  path @1 :Text;
  files @2 :Text;
  labels @3 :Text;
  recordsBegin @4 :UInt64;  # [begin, end), both 0: all
  recordsEnd @5 :UInt64;
  sharding @6 :Sharding;
  shuffle @7 :ShuffleKind;
  shuffleBuffer @8 :UInt64;
  scale @9 :Float64;
  prefetch @10 :UInt32;
}

struct Optimizer {
  rule @0 :Rule;
  learningRate @1 :Float64;
  weightDecay @2 :Float64;
  momentum @3 :Float64;
  beta1 @4 :Float64;
  beta2 @5 :Float64;
  rho @6 :Float64;
  epsilon @7 :Float64;
}

struct Schedule {
  kind @0 :ScheduleKind;
  warmupSteps @1 :UInt64;
  everySteps @2 :UInt64;
  factor @3 :Float64;
  decaySteps @4 :UInt64;
  power @5 :Float64;
  endFactor @6 :Float64;
}

struct Clip {
  kind @0 :ClipKind;
  value @1 :Float64;
}

struct Nonfinite {
  action @0 :NonfiniteAction;
  limit @1 :UInt32;
}

struct TrainSection {
  mode @0 :Mode;
  aggregate @1 :UInt32;
  staleness @2 :UInt32;
  pipeline @3 :UInt32;
  batchSize @4 :UInt32;
  epochs @5 :UInt64;
  steps @6 :UInt64;
  optimizer @7 :Optimizer;
  schedule @8 :Schedule;
  scaleLearningRateLinear @9 :Bool;
  clip @10 :Clip;
  nonfinite @11 :Nonfinite;
}

struct CheckpointSection {
  directory @0 :Text;
  everySteps @1 :UInt64;
  every @2 :Int64;  # nanoseconds
  keep @3 :UInt32;
  keepEverySteps @4 :UInt64;
  atEnd @5 :Bool;
  restore @6 :Restore;
  initFrom @7 :Text;
  initMap @8 :List(NamePair);
}

struct EvaluateSection {
  path @0 :Text;
  files @1 :Text;
  labels @2 :Text;
  everySteps @3 :UInt64;
}

struct JobConfig {
  job @0 :JobSection;
  model @1 :ModelSection;
  data @2 :DataSection;
  train @3 :TrainSection;
  checkpoint @4 :CheckpointSection;
  evaluate @5 :EvaluateSection;
}

# ---------------------------------------------------------------------------------------------- Session

# The peer that opens a connection says hello first, and nothing else until Welcome or Refused answers it. A listener
# closes a peer that is silent for hello_timeout. The first 16 bytes of the frame keep their meaning in all versions, so
# that a hello of an unknown version can still be refused with a sentence.
struct Hello {
  oldestVersion @0 :UInt16;
  newestVersion @1 :UInt16;
  cluster @2 :Text;         # another name is refused
  clusterHash @3 :UInt64;   # another hash is warned of in Welcome.warnings
  who :union {
    task @4 :TaskHello;
    client @5 :ClientHello;
    channel @6 :ChannelHello;
    shardPeer @7 :ShardPeerHello;
  }
}

# A ps or a worker opens its control connection to the chief, and opens it again whenever it is lost. By the incarnation
# the chief knows whether this is the same process. Refused: another cluster, an unlisted task, a place whose present
# process answers the chief's probe.
struct TaskHello {
  member @0 :Member;
  address @1 :Text;
  host @2 :Text;
  pid @3 :UInt32;
  shards @4 :UInt32;        # ps
  memoryBytes @5 :UInt64;   # ps
  threads @6 :UInt32;       # worker
  device @7 :Text;          # worker
  journal @8 :UInt64;  # of the chief that it last obeyed
  job @9 :UInt32;  # the job that it holds
  generation @10 :UInt64;
  metrics @11 :Text;  # host:port of its metrics, "" = none
  token @12 :UInt64;  # ps: the secret of that generation's channels, for a restarted chief; 0 = none
  term @13 :UInt64;  # term of that chief; it shows a chief of an older term that its journal is an old copy
  chief @14 :UInt64;  # incarnation of that chief
}

# A command line opens a connection to the chief for its requests.
struct ClientHello {
  user @0 :Text;
}

# A worker opens a channel to one shard, after OpenJob. Refused with code temporary while the ps hasn't made the shard
# yet; then the worker dials again. The channel continues after Welcome.lastSequence.
struct ChannelHello {
  job @0 :UInt32;
  generation @1 :UInt64;
  shard @2 :UInt32;
  worker @3 :Member;
  token @4 :UInt64;
}

# A shard opens its connection to the pacer of its job, after CreateShards.
struct ShardPeerHello {
  job @0 :UInt32;
  generation @1 :UInt64;
  from @2 :UInt32;
  ps @3 :Member;
  token @4 :UInt64;
}

struct Welcome {
  version @0 :UInt16;               # chosen from the hello's range
  term @1 :UInt64;                  # control connections
  journal @2 :UInt64;               # control connections
  heartbeatTimeout @3 :Int64;  # control connections, nanoseconds; the chief's timeout applies to all tasks
  lastSequence @4 :UInt64;          # channels
  warnings @5 :List(Text);
  chief @6 :UInt64;  # control connections: the chief's incarnation; 0 = an older version
  former @7 :List(UInt64);  # control connections: the chief's incarnations in the terms before, newest first
}

enum ErrorCode {
  failed @0; usage @1; data @2; noInput @3; unavailable @4; software @5; temporary @6; noPermission @7; config @8;
}

# A hello or a request that isn't granted. Nothing was changed. After a refused hello the connection is closed.
struct Refused {
  code @0 :ErrorCode;
  reason @1 :Text;
  ends @2 :Bool;  # another attempt is useless: the process ends with the code, even if the code is temporary
  by @3 :Member;  # the task that refuses, so that a chief that probes an address knows which task lives there; absent:
                  # a chief
}

# ---------------------------------------------------------------------------------------------- Control connections

# The message of a control frame or a blob. A receiver that doesn't know the field counts the message and drops it.
struct ControlMessage {
  union {
    describeJob @0 :DescribeJob;
    jobDescribed @1 :JobDescribed;
    createShards @2 :CreateShards;
    shardsCreated @3 :ShardsCreated;
    openJob @4 :OpenJob;
    jobOpened @5 :JobOpened;
    startJob @6 :StartJob;
    setRoster @7 :SetRoster;
    rosterApplied @8 :RosterApplied;
    fenceWorker @9 :FenceWorker;
    workerFenced @10 :WorkerFenced;
    leaseRequest @11 :LeaseRequest;
    leaseGrant @12 :LeaseGrant;
    workerFinished @13 :WorkerFinished;
    stopJob @14 :StopJob;
    setEvaluator @15 :SetEvaluator;
    evaluate @16 :Evaluate;
    evaluated @17 :Evaluated;
    closeJob @18 :CloseJob;
    jobClosed @19 :JobClosed;
    taskFailed @20 :TaskFailed;
    accusation @21 :Accusation;
    heartbeat @22 :Heartbeat;
    heartbeatAnswer @23 :HeartbeatAnswer;
    logLines @24 :LogLines;
    submitJob @25 :SubmitJob;
    jobSubmitted @26 :JobSubmitted;
    statusRequest @27 :StatusRequest;
    statusAnswer @28 :StatusAnswer;
    stopRequest @29 :StopRequest;
    requestDone @30 :Void;
    logsRequest @31 :LogsRequest;
    refused @32 :Refused;
    pauseJob @33 :PauseJob;
    prepareCheckpoint @34 :PrepareCheckpoint;
    checkpointPrepared @35 :CheckpointPrepared;
    takeCut @36 :TakeCut;
    markChannels @37 :MarkChannels;
    abandonCheckpoint @38 :AbandonCheckpoint;
    shardWritten @39 :ShardWritten;
    checkpointFailed @40 :CheckpointFailed;
    saveRequest @41 :SaveRequest;
    checkpointSaved @42 :CheckpointSaved;
    eventsRequest @43 :EventsRequest;
    eventsAnswer @44 :EventsAnswer;
    leaveRequest @45 :Void;  # task -> chief: it was told to end. The chief answers leaveGranted once nothing depends on
                             # the task
    leaveGranted @46 :Void;
  }
}

# chief -> one worker, before anything is placed. The worker reads the data's shape and builds the model once.
# Answered by JobDescribed, or by TaskFailed with what is wrong with the data or the model.
struct DescribeJob {
  job @0 :UInt32;
  config @1 :JobConfig;
  reach @2 :List(Owner);  # ps tasks that the worker dials before it answers
}

struct JobDescribed {
  job @0 :UInt32;
  model @1 :Model;
  trainRecords @2 :UInt64;
  evaluationRecords @3 :UInt64;
  unreachable @4 :List(Member);  # those of DescribeJob.reach that didn't answer
}

# chief -> every ps. The ps makes the shards that `owners` assigns to it, with all their memory and initial values.
# Answered by ShardsCreated or TaskFailed.
struct CreateShards {
  job @0 :UInt32;
  generation @1 :UInt64;
  token @2 :UInt64;
  config @3 :JobConfig;
  layout @4 :Layout;
  owners @5 :List(Owner);
  roster @6 :Roster;
  warmupSteps @7 :UInt64;
  trainRecords @8 :UInt64;
  places @9 :UInt32;
  checkpointFolder @10 :Text;
  restorePath @11 :Text;
  initPath @12 :Text;
  checkpointMark @13 :UInt64;
}

struct ShardsCreated {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> every worker. The worker builds its engine, opens its data and a channel to each shard.
# Answered by JobOpened or TaskFailed.
struct OpenJob {
  job @0 :UInt32;
  generation @1 :UInt64;
  token @2 :UInt64;
  config @3 :JobConfig;
  layout @4 :Layout;
  owners @5 :List(Owner);
  roster @6 :Roster;
  trainRecords @7 :UInt64;
  evaluates @8 :Bool;
  clock @9 :UInt64;
}

struct JobOpened {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> every worker, when all have opened the job and the pacer has its roster: the first step may begin.
struct StartJob {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> every worker: stop before the next step, or go on. During the pause no worker counts silence as a stall.
struct PauseJob {
  job @0 :UInt32;
  generation @1 :UInt64;
  paused @2 :Bool;
  reason @3 :Text;
}

# chief -> the ps of the pacer: workers join or leave. Answered by RosterApplied once the pacer knows at which step.
struct SetRoster {
  job @0 :UInt32;
  generation @1 :UInt64;
  roster @2 :Roster;
}

struct RosterApplied {
  job @0 :UInt32;
  generation @1 :UInt64;
  version @2 :UInt64;
  step @3 :UInt64;
  pacer @4 :PacerReport;
}

# chief -> every ps, when a worker is lost: no frame of this incarnation may change state any more. Answered by one
# WorkerFenced per shard; only then are its leased records lent again.
struct FenceWorker {
  job @0 :UInt32;
  generation @1 :UInt64;
  worker @2 :Member;
}

struct WorkerFenced {
  job @0 :UInt32;
  generation @1 :UInt64;
  shard @2 :UInt32;
  worker @3 :Member;
  lastSequence @4 :UInt64;
  lastClock @5 :UInt64;
}

# worker -> chief, before its records are used up; at most one is outstanding. Answered by LeaseGrant.
struct LeaseRequest {
  job @0 :UInt32;
  generation @1 :UInt64;
  recordsPerSecond @2 :Float64;
}

# Records lent to one worker (async, ssp), or a block of steps lent to a roster (sync): common/messages/control.h says
# which positions belong to which step.
struct Lease {
  id @0 :UInt64;
  epoch @1 :UInt32;
  positions @2 :List(Interval);
  firstStep @3 :UInt64;
  steps @4 :UInt64;
  ranks @5 :UInt32;
  roster @6 :UInt64;
  rank @7 :UInt32;
}

# chief -> worker. Journaled before it is sent. `last`: no more leases follow.
struct LeaseGrant {
  job @0 :UInt32;
  generation @1 :UInt64;
  lease @2 :Lease;  # may be absent
  last @3 :Bool;
  roster @4 :UInt64;  # sync: the roster for which `last` holds
}

# worker -> chief, once, between two pushes and with all pushes answered: its data or the job's steps are used up, or it
# got StopJob.
struct WorkerFinished {
  job @0 :UInt32;
  generation @1 :UInt64;
  steps @2 :UInt64;
}

# chief -> workers: stop after the current push and send WorkerFinished.
struct StopJob {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> one worker: from now on it does the evaluations during training.
struct SetEvaluator {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> one worker, after all WorkerFinished: pull the parameters and evaluate the test set. Answered by Evaluated.
struct Evaluate {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# worker -> chief, as the answer to Evaluate, or unasked during training.
struct Evaluated {
  job @0 :UInt32;
  generation @1 :UInt64;
  step @2 :UInt64;
  final @3 :Bool;
  loss @4 :Float64;
  hasAccuracy @5 :Bool;
  accuracy @6 :Float64;
  examples @7 :UInt64;
  took @8 :Int64;  # nanoseconds
  stalledTraining @9 :Bool;
  parametersHash @10 :UInt64;
}

# chief -> all: release everything of the job. Answered by JobClosed, even by a task that doesn't know the job.
struct CloseJob {
  job @0 :UInt32;
  generation @1 :UInt64;
  reason @2 :Text;
  removed @3 :Bool;
}

struct JobClosed {
  job @0 :UInt32;
}

# task -> chief: the job can't go on at this task; the task itself is healthy.
struct TaskFailed {
  job @0 :UInt32;
  generation @1 :UInt64;
  code @2 :ErrorCode;
  reason @3 :Text;
}

# task -> chief: "I can't reach that task". The chief probes it at once. Repeated while the link is down, and sent once
# more, withdrawn, when the link is back.
struct Accusation {
  job @0 :UInt32;
  generation @1 :UInt64;
  role @2 :Role;
  index @3 :UInt32;
  reason @4 :Text;
  lasts @5 :Int64;  # nanoseconds since the accused was last heard
  withdrawn @6 :Bool;
}

enum Phase { idle @0; input @1; pull @2; compute @3; push @4; wait @5; evaluate @6; }

# Visited positions of an epoch that isn't complete: ascending, disjoint, not touching.
struct EpochLedger {
  epoch @0 :UInt32;
  visited @1 :List(Interval);
}

# What only the pacer knows of a job.
struct PacerReport {
  globalStep @0 :UInt64;
  examples @1 :UInt64;
  training @2 :Int64;  # nanoseconds
  measuredSteps @3 :UInt64;
  measuredExamples @4 :UInt64;
  loss @5 :Float64;
  late @6 :UInt64;
  skipped @7 :UInt64;
  skippedInRow @8 :UInt32;
  completeEpochs @9 :UInt32;
  ledger @10 :List(EpochLedger);
  finished @11 :Bool;
  staleness @12 :Float64;
  slowestClock @13 :UInt64;  # ssp
  learningRate @14 :Float64;  # of the next update
}

# task -> chief, each tenth of the heartbeat timeout. Answered by HeartbeatAnswer. Its arrival shows that the task
# lives, its content whether the task makes progress.
struct Heartbeat {
  job @0 :UInt32;
  generation @1 :UInt64;
  phase @2 :Phase;
  inPhase @3 :Int64;  # nanoseconds
  steps @4 :UInt64;
  examples @5 :UInt64;
  loss @6 :Float64;
  phaseTimes @7 :List(Int64);  # nanoseconds, by number of Phase; worker
  turns @8 :List(UInt64);      # of each shard thread; ps
  pacer @9 :PacerReport;       # from the ps that owns the pacer, else absent
  shards @10 :List(ShardLoad); # of each shard that it holds; ps
  work @11 :UInt64;  # pieces of long work done for the job; only its growth has a meaning
}
struct ShardLoad {
  shard @0 :UInt32;
  lived @1 :Int64;  # nanoseconds, like the two below
  busy @2 :Int64;
  applying @3 :Int64;
}

struct HeartbeatAnswer {
  term @0 :UInt64;
  heartbeatTimeout @1 :Int64;  # nanoseconds; the chief's timeout applies to all tasks
}

struct LogLine {
  wallNanoseconds @0 :Int64;
  role @1 :Role;
  index @2 :UInt32;
  level @3 :UInt8;  # 0 debug, 1 info, 2 warn, 3 error
  text @4 :Text;
}

# task -> chief as they are written; chief -> client as the answer to LogsRequest. No answer.
struct LogLines {
  lines @0 :List(LogLine);
  dropped @1 :UInt64;
}

# ---------------------------------------------------------------------------------------------- Checkpoints
# common/messages/checkpoint.h has their order.

# chief -> every ps: create the files of its shards in the attempt's folder and reserve all of their space.
# Answered by CheckpointPrepared or CheckpointFailed, before anything stalls.
struct PrepareCheckpoint {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
  folder @3 :Text;
  holds @4 :Bool;  # nothing is applied after the cut
}

struct CheckpointPrepared {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
}

# chief -> the pacer's ps, sync: cut at a step, or at once if the step has passed.
struct TakeCut {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
  at @3 :UInt64;
}

# chief -> every worker, async and ssp: send a Mark on every channel before the next push.
struct MarkChannels {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
}

# chief -> every ps: the attempt is abandoned. Release the marked workers; the chief removes what was written.
struct AbandonCheckpoint {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
}

struct WorkerEntry {
  worker @0 :Member;
  last @1 :UInt64;
  clock @2 :UInt64;
}

# ps -> chief, for each shard when its file is written and synced.
struct ShardWritten {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
  shard @3 :UInt32;
  version @4 :UInt64;
  elements @5 :UInt64;
  workers @6 :List(WorkerEntry);
  file @7 :File;
  pacer @8 :PacerReport;  # from shard 0, else absent
  cut @9 :Int64;          # nanoseconds, as the two below
  parked @10 :Int64;
  writing @11 :Int64;

  struct File {
    name @0 :Text;
    bytes @1 :UInt64;
    dataBegin @2 :UInt64;
    checksum @3 :UInt64;
    chunks @4 :List(UInt64);
  }
}

# ps -> chief: no space, or a disk error. The shard is healthy, and training goes on.
struct CheckpointFailed {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
  code @3 :ErrorCode;
  reason @4 :Text;
}

# ---------------------------------------------------------------------------------------------- Command line and chief

# client -> chief. Answered by JobSubmitted, or Refused (bad job, queue full, the name is taken).
struct SubmitJob {
  jobToml @0 :Text;  # whole, with absolute paths
  warmupSteps @1 :UInt64;
  goesOn @2 :Bool;  # if a job of this name and text hasn't ended, follow that job; else its name is taken
  awaitedWorkers @3 :UInt32;  # the job doesn't begin with fewer; once it has begun, only minWorkers counts
}

struct JobSubmitted {
  job @0 :UInt32;
  ahead @1 :UInt32;
  wasThere @2 :Bool;  # the job was there already and goes on
}

# client -> chief. Answered by StatusAnswer: at once, or when the job has ended.
struct StatusRequest {
  job @0 :Text;
  all @1 :Bool;
  waitForEnd @2 :Int64;  # nanoseconds, at most
}

struct StatusAnswer {
  json @0 :Text;
}

# client -> chief. Answered by RequestDone when the job is ending, or by Refused.
struct StopRequest {
  job @0 :Text;
  kill @1 :Bool;
}

# client -> chief. Answered by one LogLines; with `follow`, by more of them as lines are written.
struct LogsRequest {
  job @0 :Text;
  tasks @1 :List(Task);
  level @2 :UInt8;
  sinceWallNanoseconds @3 :Int64;
  follow @4 :Bool;

  struct Task {
    role @0 :Role;
    index @1 :UInt32;
  }
}

# client -> chief: take a checkpoint now. Answered by CheckpointSaved once it is committed, or by Refused.
struct SaveRequest {
  job @0 :Text;
}

struct CheckpointSaved {
  path @0 :Text;
  step @1 :UInt64;
}

# client -> chief. Answered by one EventsAnswer; with `follow`, by more of them as events happen.
struct EventsRequest {
  job @0 :Text;
  all @1 :Bool;
  follow @2 :Bool;
  most @3 :UInt32;  # only this many of the newest remembered events; 0: all
}

struct EventsAnswer {
  json @0 :Text;
}

# ---------------------------------------------------------------------------------------------- Channels
# Job, generation and sequence are in the frame's header; tensor bytes are its payload.

enum Want { nothing @0; bucket @1; all @2; }
enum PushOutcome { none @0; applied @1; skipped @2; late @3; duplicate @4; finished @5; vetoed @6; }

# worker -> shard: one bucket of gradients. A push is all frames of one step on one channel; its last frame has `last`.
# Answered by Parameters as `want` says, else by Acknowledge.
struct Push {
  bucket @0 :UInt32;
  examples @1 :UInt32;       # this and the following count on the last frame only
  clock @2 :UInt64;
  pullVersion @3 :UInt64;
  loss @4 :Float32;
  epoch @5 :UInt32;
  lease @6 :UInt64;
  want @7 :Want;
  last @8 :Bool;
  skipped @9 :Bool;
  visited @10 :List(Interval);
  final @11 :Bool;  # the worker pushes no more, or not before its next lease: ssp no longer waits for it
  roster @12 :UInt64;  # sync with leases: the roster to which its records were lent
}

# worker -> shard: parameters without a push. Answered by Parameters, one per bucket.
struct Pull {
  id @0 :UInt64;
  begins @1 :Bool;  # ssp: from now on the others wait for the sender's pushes
  clock @2 :UInt64;  # begins: clock of its last push
}

# shard -> worker: one bucket of parameters of one version.
struct Parameters {
  version @0 :UInt64;
  roster @1 :UInt64;
  pullId @2 :UInt64;
  acknowledged @3 :UInt64;
  bucket @4 :UInt32;
  outcome @5 :PushOutcome;
  last @6 :Bool;
  finished @7 :Bool;
  clock @8 :UInt64;  # answers a pull that begins: the worker's clock from now on
}

# shard -> worker: returns credits without parameters.
struct Acknowledge {
  acknowledged @0 :UInt64;
  outcome @1 :PushOutcome;
  finished @2 :Bool;
}

# worker -> shard, async and ssp: a checkpoint's boundary. The worker sends nothing on this channel until MarkTaken.
struct Mark {
  attempt @0 :UInt64;
}

# shard -> worker: the cut is taken, or the attempt is abandoned.
struct MarkTaken {
  attempt @0 :UInt64;
}

# ---------------------------------------------------------------------------------------------- Shards and their pacer

# shard -> pacer, sync: the pushes staged here for a step cover the roster or `aggregate` members. Sent again whenever
# another push is staged after that. When all shards agree, Commit answers it.
struct Staged {
  shard @0 :UInt32;
  nonfinite @1 :Bool;
  step @2 :UInt64;
  norm2 @3 :Float64;
  members @4 :List(Member);  # retired: replaced by ranks
  roster @5 :UInt64;  # in force at the shard
  ranks @6 :List(UInt64);  # bit r of word w: rank 64 w + r of the roster; trailing zero words are left out
}

# pacer -> shards, sync: commit step `step` as the mean over `ranks`, in that order.
struct Commit {
  step @0 :UInt64;
  scale @1 :Float64;
  skip @2 :Bool;
  members @3 :List(Member);  # retired: replaced by ranks
  roster @4 :Roster;  # retired: PacerNews carries rosters, in the same stream
  ranks @5 :List(UInt64);    # as in Staged
  rosterVersion @6 :UInt64;  # the roster of the ranks
}

# pacer -> shards: the roster changed, or the shard has just connected; async and ssp: the job has done all its steps.
struct PacerNews {
  slowestClock @0 :UInt64;
  globalStep @1 :UInt64;
  finished @2 :Bool;
  roster @3 :Roster;
}

# pacer -> shards, sync: cut at this point of the stream, between two commits.
struct Cut {
  attempt @0 :UInt64;
}
