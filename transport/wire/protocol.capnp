# All messages between the tasks of a disttrain cluster. "chief -> every ps" in a comment names the sender and the
# receiver of a message.
#
# A frame (frame.h) carries one message in its control part, or a big message in its payload. The C++ structs with the
# same names are in common/messages. codec.h converts between messages and structs, and checks ranges.
#
# From the first release on, a new field is added at the end, with the next number. Numbers are then never changed or
# reused, and a field that is no longer used keeps its line and is marked as retired. A reader of an older version skips
# fields that it doesn't know, and a writer of an older version leaves them at their defaults. All fields below belong
# to version 1.
@0xd1577a1e0c0de001;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("disttrain::wire::schema");

# ---------------------------------------------------------------------------------------------- Pieces

enum Role { chief @0; ps @1; worker @2; evaluator @3; }

# One process in its place, such as worker/2. Another process in the same place has another incarnation.
struct Member {
  role @0 :Role;
  index @1 :UInt32;
  incarnation @2 :UInt64;
}

# The workers of a job in the order of their ranks.
struct Roster {
  version @0 :UInt64;
  members @1 :List(Member);
}

# The ps that owns a shard, and the address at which it listens.
struct Owner {
  ps @0 :Member;
  address @1 :Text;
}

# A half-open range [begin, end) of positions in an epoch's order of the records.
struct Interval {
  begin @0 :UInt64;
  end @1 :UInt64;
}

enum VariableKind { trainable @0; state @1; }
enum InitializerKind { zeros @0; normal @1; glorot @2; he @3; ones @4; uniform @5; }

struct Variable {
  name @0 :Text;
  shape @1 :List(UInt64);
  kind @2 :VariableKind;
  initializer @3 :InitializerKind;
  scale @4 :Float64;
  fanIn @5 :UInt64;
  fanOut @6 :UInt64;
  dtype @7 :DType;  # float32 or float64
  low @8 :Float64 = -inf;  # the smallest and the largest value that an element may have
  high @9 :Float64 = inf;
}

# The types of elements, as in common/dtype.h.
enum DType { float32 @0; float64 @1; float16 @2; bfloat16 @3; int32 @4; int64 @5; uint8 @6; bytes @7; }

# One array of a batch: the values of one feature of all its records, or their labels.
struct Column {
  name @0 :Text;
  dtype @1 :DType;
  shape @2 :List(UInt64);  # of one record
  ragged @3 :Bool;         # a record may be shorter than the first dimension
  limit @4 :UInt64;        # integers are below it; 0: no limit
  parts @5 :List(ColumnPart);  # a model that is sent has none
  pad @6 :Int64;               # the same
  hasIgnored @7 :Bool;         # a value that is allowed beside those below the limit
  ignored @8 :Int64;
}
struct ColumnPart {
  name @0 :Text;
  first @1 :UInt64;
  shape @2 :List(UInt64);
  limit @3 :UInt64;
}

# The kinds of metrics, as in common/model_metric.h.
enum MetricKind { mean @0; accuracy @1; topK @2; auc @3; precision @4; recall @5; perplexity @6; mse @7; mae @8; }

# A metric that a model computes.
struct ModelMetric {
  name @0 :Text;
  kind @1 :MetricKind;
  k @2 :UInt32 = 1;  # topK
}

# The value of a metric.
struct Metric {
  name @0 :Text;
  value @1 :Float64;
}

struct Model {
  variables @0 :List(Variable);  # in the order in which a forward pass uses them
  # Retired: the number of values of a record, and the number of classes of its label (0: the label is a value). That
  # was enough while each model took one vector and one label. `columns` says more.
  inputElements @1 :UInt64;
  classes @2 :UInt64;
  columns @3 :List(Column);
  metrics @4 :List(ModelMetric);
  evaluates @5 :Bool = true;
  predicts @6 :Bool;
  bringsValues @7 :Bool;  # the workers send the initial values to the ps tasks
}

# Positions and lengths count words of 4 bytes, as in common/layout.h.
struct Bucket {
  shard @0 :UInt32;
  flatBegin @1 :UInt64;
  shardBegin @2 :UInt64;
  words @3 :UInt64;
}

# In which bucket and shard each element of each variable is. The layout never changes within a generation.
struct Layout {
  model @0 :Model;
  shards @1 :UInt32;
  variableBegins @2 :List(UInt64);
  buckets @3 :List(Bucket);
}

# ---------------------------------------------------------------------------------------------- A job's settings

# The settings of job.toml. The chief reads the file once, fills in all defaults, makes paths absolute, and computes the
# number of steps from the epochs. So no task has to read the file. common/config/job_config.h explains the settings and
# their units. The receiver checks the ranges again (check_ranges in common/config/reader/reader.h).

enum Placement { balanced @0; roundRobin @1; greedy @2; partitioned @3; }
enum Mode { async @0; sync @1; ssp @2; }
enum Activation { sigmoid @0; relu @1; tanh @2; gelu @3; }
enum Loss { softmaxCrossEntropy @0; mse @1; sigmoidCrossEntropy @2; }
enum Rule { sgd @0; momentum @1; nesterov @2; adagrad @3; rmsprop @4; adam @5; adamw @6; lamb @7; ftrl @8; }
enum DecayOf { all @0; matrices @1; }
enum ScheduleKind { constant @0; step @1; exponential @2; polynomial @3; cosine @4; }
enum ClipKind { none @0; globalNorm @1; value @2; }
enum StateRule { mean @0; lowestRank @1; }
enum NonfiniteAction { skip @0; fail @1; }
enum Sharding { lease @0; none @1; }
enum DataFormat { idx @0; csv @1; npy @2; text @3; tfrecord @4; libsvm @5; jsonl @6; webdataset @7; images @8; npz @9; parquet @10; }
enum OnWorkerLoss { shrink @0; wait @1; }
enum OnFailure { end @0; resubmit @1; }
enum Restore { newest @0; none @1; }
enum ShuffleKind { epoch @0; buffer @1; none @2; blocks @3; }
enum Stem { cifar @0; imagenet @1; }

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
  psTimeout @9 :Int64;  # nanoseconds; 0: none
  workersTimeout @10 :Int64;  # nanoseconds; 0: none
  onFailure @11 :OnFailure;
  maxResubmits @12 :UInt32 = 3;
}

struct ResnetSection {
  depth @0 :UInt32;
  stem @1 :Stem;
  image @2 :List(UInt32);  # channels, height, width
  outputs @3 :UInt32;
}

struct TransformerSection {
  blocks @0 :UInt32;
  heads @1 :UInt32;
  width @2 :UInt32;
  context @3 :UInt32;
  vocabulary @4 :UInt32;
  tiedEmbeddings @5 :Bool;
}

struct MatrixFactorizationSection {
  users @0 :UInt32;
  items @1 :UInt32;
  factors @2 :UInt32;
}

struct WideDeepSection {
  numeric @0 :UInt32;
  categories @1 :List(UInt32);
  embedding @2 :UInt32;
  hidden @3 :List(UInt32);
  outputs @4 :UInt32;
}

struct ModelSection {
  builtin @0 :Text;
  layers @1 :List(UInt32);
  activation @2 :Activation;
  initializer @3 :Initializer;
  dropout @4 :Float64;
  loss @5 :Loss;
  labelSmoothing @6 :Float64;
  classWeights @7 :List(Float64);
  metrics @8 :List(NamePair);  # name, kind
  resnet @9 :ResnetSection;
  transformer @10 :TransformerSection;
  matrixFactorization @11 :MatrixFactorizationSection;
  wideDeep @12 :WideDeepSection;
  program @13 :Text;
  trainer @14 :List(Text);
  folder @15 :Text;
  startTimeout @16 :Int64;  # nanoseconds
  hasWeights @17 :Bool;
  hasSoftLabels @18 :Bool;
  targetMean @19 :Float64;
  targetDeviation @20 :Float64 = 1;
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
  window @11 :UInt32;
  stride @12 :UInt32;
  columns @13 :List(DataColumn);
  missing @14 :List(Text);
  shuffleWindow @15 :UInt64;
  memory @16 :UInt64;
  index @17 :Text;
  threads @18 :UInt32;
  tokenizer @19 :Text;
  bucketBy @20 :Text;
  bucketWindow @21 :UInt32;
  mix @22 :Float64;
  maxExpansion @23 :UInt32 = 100;
}

enum ColumnKind {
  numeric @0;
  category @1;
  label @2;
  ignore @3;
  image @4;
  tokens @5;
  weight @6;
  bytes @7;
}

enum Truncate {
  right @0;
  left @1;
  none @2;
}

enum PadTo {
  length @0;
  longest @1;
}

enum Normalise {
  none @0;
  standard @1;
}

struct DataColumn {
  name @0 :Text;
  kind @1 :ColumnKind;
  from @2 :Text;
  hasMissing @3 :Bool;
  missing @4 :Float64;
  normalise @5 :Normalise;
  hasMean @6 :Bool;
  mean @7 :Float64;
  hasDeviation @8 :Bool;
  deviation @9 :Float64;
  boundaries @10 :List(Float64);
  vocabulary @11 :List(Text);
  hash @12 :UInt32;
  cross @13 :List(Text);
  strip @14 :Text;
  shape @15 :List(UInt32);
  crop @16 :Bool;
  flip @17 :Bool;
  zeroBased @18 :Bool;
  tokenizer @19 :Text;
  limit @20 :UInt32;
  length @21 :UInt32;
  pad @22 :UInt32;
  truncate @23 :Truncate;
  specialTokens @24 :Bool;
  withLength @25 :Bool;
  padTo @26 :PadTo;
  oneHot @27 :Bool;
  minCount @28 :UInt32 = 1;
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
  l1 @8 :Float64;
  l2 @9 :Float64;
  weightDecayOf @10 :DecayOf;
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
  state @12 :StateRule;
  accumulate @13 :UInt32 = 1;
  profileFirst @14 :UInt64;  # the first and the last step of the trace, both 0: no trace
  profileLast @15 :UInt64;
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
  average @4 :Float64;
  batchSize @5 :UInt32;
  recordsBegin @6 :UInt64;  # [begin, end), both 0: all
  recordsEnd @7 :UInt64;
  metric @8 :Text;
  better @9 :Better;
  stopAfter @10 :UInt32;
  keepBest @11 :UInt32;
}

enum Better { auto @0; higher @1; lower @2; }

struct JobConfig {
  job @0 :JobSection;
  model @1 :ModelSection;
  data @2 :DataSection;
  train @3 :TrainSection;
  checkpoint @4 :CheckpointSection;
  evaluate @5 :EvaluateSection;
}

# ---------------------------------------------------------------------------------------------- Session

# The first message on a connection. The peer that dialled sends it, and sends nothing more before the answer, which is
# Welcome or Refused. A listener closes a peer that hasn't said hello within hello_timeout. The first 16 bytes of the
# frame have the same meaning in all versions, so that a listener can refuse a hello of an unknown version with a
# sentence.
struct Hello {
  oldestVersion @0 :UInt16;
  newestVersion @1 :UInt16;
  cluster @2 :Text;         # the listener refuses a hello with another cluster name than its own
  clusterHash @3 :UInt64;   # if the hash differs from the listener's, Welcome.warnings says so
  who :union {
    task @4 :TaskHello;
    client @5 :ClientHello;
    channel @6 :ChannelHello;
    shardPeer @7 :ShardPeerHello;
  }
}

# The hello of a ps or a worker on its control connection to the chief. The task dials again whenever this connection is
# lost, and the incarnation shows the chief whether the task is still the same process. The chief refuses a task of
# another cluster. It refuses a task that isn't in cluster.toml, except a worker if allow_unlisted_workers is set. It
# also refuses a second process for a place, if the first one answers the chief's probe.
struct TaskHello {
  member @0 :Member;
  address @1 :Text;
  host @2 :Text;
  pid @3 :UInt32;
  shards @4 :UInt32;        # ps
  memoryBytes @5 :UInt64;   # ps
  threads @6 :UInt32;       # worker
  device @7 :Text;          # worker
  journal @8 :UInt64;  # journal of the chief that the task obeyed last
  job @9 :UInt32;  # the job that the task holds
  generation @10 :UInt64;  # 0: a worker that hasn't opened the job, or couldn't
  metrics @11 :Text;  # host:port of the task's metrics, "" = none
  token @12 :UInt64;  # ps: the secret that channels of this generation must name; a restarted chief learns it here
  term @13 :UInt64;  # term of the chief that the task obeyed last; a chief with a lower term has an old journal
  chief @14 :UInt64;  # incarnation of the chief that the task obeyed last
  process @15 :UInt64;  # the incarnation with which this process began; 0 = a task of an older version
}

# The hello of a command line that connects to the chief.
struct ClientHello {
  user @0 :Text;
}

# The hello of a worker on its channel to a shard. The worker opens its channels after OpenJob. If the ps hasn't made
# the shard yet, it refuses with the code `temporary`, and the worker dials again. The worker's next frame has the
# number after Welcome.lastSequence.
struct ChannelHello {
  job @0 :UInt32;
  generation @1 :UInt64;
  shard @2 :UInt32;
  worker @3 :Member;
  token @4 :UInt64;
}

# The hello of a shard on its connection to the pacer of its job. The shard opens this connection after CreateShards.
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
  heartbeatTimeout @3 :Int64;  # control connections: the chief's heartbeat timeout in nanoseconds; all tasks use it
  lastSequence @4 :UInt64;          # channels
  warnings @5 :List(Text);
  chief @6 :UInt64;  # control connections: the chief's incarnation; 0 if the chief is of an older version
  former @7 :List(UInt64);  # control connections: the incarnations of the chiefs in earlier terms, newest first
}

enum ErrorCode {
  failed @0; usage @1; data @2; noInput @3; unavailable @4; software @5; temporary @6; noPermission @7; config @8;
}

# The answer to a hello or a request that the receiver doesn't grant. The request has changed nothing. After a refused
# hello the connection is closed.
struct Refused {
  code @0 :ErrorCode;
  reason @1 :Text;
  ends @2 :Bool;  # the refused process must end with the code and not try again, even if the code is `temporary`
  by @3 :Member;  # the task that refuses, so that a probe learns which process answered; absent if a chief refuses
}

# ---------------------------------------------------------------------------------------------- Control connections

# The message in a control frame or a blob frame. A receiver that doesn't know the message counts and drops it.
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
    # task -> chief: the task was told to end. The chief answers with leaveGranted when the task may end without loss.
    leaveRequest @45 :Void;
    leaveGranted @46 :Void;
    checkpointRequest @47 :CheckpointRequest;
    traceEvents @48 :TraceEvents;
    evaluateCheckpoint @49 :EvaluateCheckpoint;
    evaluationFailed @50 :EvaluationFailed;
    resubmitRequest @51 :ResubmitRequest;
  }
}

# chief -> one worker, before the chief places the shards. The worker reads the data's shape and builds the model once.
# It answers with JobDescribed, or with TaskFailed if something is wrong with the data or the model.
struct DescribeJob {
  job @0 :UInt32;
  config @1 :JobConfig;
  reach @2 :List(Owner);  # ps tasks that the worker must dial before it answers, to test the network
}

struct JobDescribed {
  job @0 :UInt32;
  model @1 :Model;
  trainRecords @2 :UInt64;
  evaluationRecords @3 :UInt64;
  unreachable @4 :List(Member);  # the ps tasks of DescribeJob.reach that didn't answer
  trainHash @5 :UInt64;  # of the training records; 0: not known
  # What [data.columns] took from the training set, for checkpoints: common/checkpoint/kept_columns.h. Or the labels and
  # the header of csv files without it: common/checkpoint/kept_csv.h
  columns @6 :Data;
  notice @7 :Text;  # a warning of the job; "": none
}

# chief -> every ps. The ps makes the shards that `owners` assigns to it, with their memory and their first values. It
# answers with ShardsCreated or TaskFailed.
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

# chief -> every worker. The worker builds its engine, opens its data, and opens a channel to each shard. It answers
# with JobOpened or TaskFailed.
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
  trainHash @10 :UInt64;
  batches @11 :UInt64;  # sharding = "none": how many batches of its order the worker has done
}

# wires: how the worker is connected to the shards, as a sum: 1 = tcp, 2 = shared memory. Unknown bits are ignored.
struct JobOpened {
  job @0 :UInt32;
  generation @1 :UInt64;
  wires @2 :UInt8;
}

# chief -> every worker, when all workers have opened the job and the pacer has the roster. The worker may begin its
# first step.
struct StartJob {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> every worker. If `paused` is true, the worker stops before its next step; otherwise it goes on. During the
# pause, a worker that hears nothing from a shard doesn't take this for a failure.
struct PauseJob {
  job @0 :UInt32;
  generation @1 :UInt64;
  paused @2 :Bool;
  reason @3 :Text;
}

# chief -> the ps of the pacer, when workers join or leave. The ps answers with RosterApplied, which names the step
# after which the new roster is in force.
struct SetRoster {
  job @0 :UInt32;
  generation @1 :UInt64;
  roster @2 :Roster;
  ends @3 :Bool;  # sync: the job is being stopped, and the pacer commits no more steps
}

struct RosterApplied {
  job @0 :UInt32;
  generation @1 :UInt64;
  version @2 :UInt64;
  step @3 :UInt64;
  pacer @4 :PacerReport;
  batches @5 :List(OwnBatches);
}

# sharding = "none": how many batches of its own order the worker has done.
struct OwnBatches {
  role @0 :Role;
  index @1 :UInt32;
  batches @2 :UInt64;
}

# chief -> every ps, when a worker is lost. From now on no frame of this incarnation may change a shard. Each shard
# answers with WorkerFenced. When all shards have answered, the chief lends the worker's records again.
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

# worker -> chief: asks for the next lease, before the worker's records are used up. The chief answers with LeaseGrant.
# A worker has at most one unanswered request.
struct LeaseRequest {
  job @0 :UInt32;
  generation @1 :UInt64;
  recordsPerSecond @2 :Float64;
}

# Records that are lent to one worker (async, ssp), or a block of steps that is lent to a roster (sync).
# common/messages/control.h says which positions belong to which step.
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

# chief -> worker: a lease. In async and ssp, the chief writes the grant to its journal before it sends the grant.
# `last` means that no more leases follow.
struct LeaseGrant {
  job @0 :UInt32;
  generation @1 :UInt64;
  lease @2 :Lease;  # may be absent
  last @3 :Bool;
  roster @4 :UInt64;  # sync: `last` is true only for this roster; a newer roster may get more leases
}

# worker -> chief, once. The worker has no more to do, because its records or the job's steps are used up, or because it
# got StopJob. All its pushes are answered.
struct WorkerFinished {
  job @0 :UInt32;
  generation @1 :UInt64;
  steps @2 :UInt64;
}

# worker -> chief. The worker's trainer asks for a checkpoint, and the chief takes one as soon as it can.
struct CheckpointRequest {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> every worker. The worker stops after its current push and sends WorkerFinished.
struct StopJob {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> one worker. From now on this worker does the evaluations during training.
struct SetEvaluator {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# chief -> one worker, when all workers have sent WorkerFinished. The worker pulls the parameters, evaluates the test
# set, and answers with Evaluated.
struct Evaluate {
  job @0 :UInt32;
  generation @1 :UInt64;
}

# worker -> chief. The result of an evaluation: the answer to Evaluate, or one of the evaluations during training, for
# which the chief doesn't ask. evaluator -> chief: the answer to EvaluateCheckpoint.
struct Evaluated {
  job @0 :UInt32;
  generation @1 :UInt64;
  step @2 :UInt64;
  final @3 :Bool;
  loss @4 :Float64;
  # Retired: an evaluation had one metric, its accuracy, or none. A reader takes it for a metric named "accuracy".
  hasAccuracy @5 :Bool;
  accuracy @6 :Float64;
  examples @7 :UInt64;
  took @8 :Int64;  # nanoseconds
  stalledTraining @9 :Bool;
  parametersHash @10 :UInt64;
  metrics @11 :List(Metric);
  path @12 :Text;  # from an evaluator: the checkpoint's folder; empty from a worker
  # A warning of the job; "": none. All evaluations of a job may have the same one, and the chief warns once.
  notice @13 :Text;
}

# chief -> one evaluator. The evaluator reads the checkpoint and evaluates it, and answers with Evaluated or
# EvaluationFailed. A newer order replaces the current one. The evaluator repeats its answer to an order that is
# repeated.
struct EvaluateCheckpoint {
  job @0 :UInt32;
  generation @1 :UInt64;  # of the checkpoint
  config @2 :JobConfig;
  path @3 :Text;
}

# evaluator -> chief. The evaluator couldn't evaluate the checkpoint.
struct EvaluationFailed {
  job @0 :UInt32;
  generation @1 :UInt64;
  path @2 :Text;
  code @3 :ErrorCode;
  reason @4 :Text;
}

# chief -> all tasks. The task releases everything of the job, and answers with JobClosed. A task that doesn't know the
# job answers, too.
struct CloseJob {
  job @0 :UInt32;
  generation @1 :UInt64;
  reason @2 :Text;
  removed @3 :Bool;
}

struct JobClosed {
  job @0 :UInt32;
}

# task -> chief. The job can't go on at this task. The task itself is healthy and can take another job.
struct TaskFailed {
  job @0 :UInt32;
  generation @1 :UInt64;
  code @2 :ErrorCode;
  reason @3 :Text;
}

# task -> chief. The sender can't reach the task that the message names, and the chief probes that task at once. The
# sender repeats the accusation until it reaches the accused task again. Then it sends the accusation once more, with
# `withdrawn` set.
struct Accusation {
  job @0 :UInt32;
  generation @1 :UInt64;
  role @2 :Role;
  index @3 :UInt32;
  reason @4 :Text;
  lasts @5 :Int64;  # nanoseconds since the sender last heard from the accused task
  withdrawn @6 :Bool;
}

enum Phase { idle @0; input @1; pull @2; compute @3; push @4; wait @5; evaluate @6; }

# The visited positions of an epoch that isn't complete. The intervals are in ascending order, and no two of them touch.
struct EpochLedger {
  epoch @0 :UInt32;
  visited @1 :List(Interval);
}

# The numbers of a job that only the pacer knows.
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

# task -> chief, ten times in each heartbeat timeout, or less often if HeartbeatAnswer.heartbeatPause says so. The chief answers with HeartbeatAnswer. The heartbeat's arrival
# shows that the task lives; its content shows whether the task makes progress.
struct Heartbeat {
  job @0 :UInt32;
  generation @1 :UInt64;
  phase @2 :Phase;
  inPhase @3 :Int64;  # nanoseconds
  steps @4 :UInt64;
  examples @5 :UInt64;
  loss @6 :Float64;
  phaseTimes @7 :List(Int64);  # worker: nanoseconds spent in each Phase
  turns @8 :List(UInt64);      # ps: for each shard thread, a number that grows while the thread is alive
  pacer @9 :PacerReport;       # only from the ps that owns the pacer
  shards @10 :List(ShardLoad); # ps: the load of each shard that it holds
  work @11 :UInt64;  # how many pieces of long work are done for the job; while it grows, the task makes progress
  metrics @12 :List(Metric);  # worker: over its newest steps
  clock @13 :Int64;  # the sender's monotonic clock when it sent this message, in nanoseconds; 0: not told
  # worker: nanoseconds in each stage of making batches from files (read, decode, transform, batch), summed over its
  # input threads; empty if the records are in memory
  dataTimes @14 :List(Int64);
  # worker: how it is connected to the shards now, as in JobOpened; 0: not told. A chief that was restarted learns it here.
  wires @15 :UInt8;
}
struct ShardLoad {
  shard @0 :UInt32;
  lived @1 :Int64;  # nanoseconds, like the two fields below
  busy @2 :Int64;
  applying @3 :Int64;
}

struct HeartbeatAnswer {
  term @0 :UInt64;
  heartbeatTimeout @1 :Int64;  # the chief's heartbeat timeout in nanoseconds; all tasks use it
  # Heartbeat.clock of the heartbeat that this message answers, and the chief's monotonic clock when it sent the answer.
  # From these two a task estimates how far its clock is from the chief's. Both 0: not told.
  heartbeatClock @2 :Int64;
  chiefClock @3 :Int64;
  heartbeatPause @4 :Int64;  # nanoseconds until the task's next heartbeat; 0: a tenth of the timeout
}

# task -> chief, with train.profile_steps: a piece of the events that the task has recorded. common/messages/trace.h
# explains the fields. Nobody answers TraceEvents.
struct TraceEvents {
  job @0 :UInt32;
  generation @1 :UInt64;
  piece @2 :UInt32;  # its number, from 0
  last @3 :Bool;
  dropped @4 :UInt64;
  clockOffset @5 :Int64;       # nanoseconds
  clockUncertainty @6 :Int64;  # nanoseconds; negative: the offset isn't known
  events @7 :List(TraceEvent);
}

enum TraceKind {
  input @0; pull @1; compute @2; push @3; wait @4; evaluate @5; part @6; ready @7; send @8; answer @9;
  receive @10; handle @11; apply @12; sum @13; prepare @14; reply @15; staged @16; commit @17; committed @18; cut @19;
}

struct TraceEvent {
  kind @0 :TraceKind;
  begin @1 :Int64;  # nanoseconds of the task's monotonic clock, like the next field
  end @2 :Int64;
  step @3 :UInt64;
  worker @4 :UInt32;
  incarnation @5 :UInt64;
  sequence @6 :UInt64;
  shard @7 :UInt32;
  bucket @8 :UInt32;
  bytes @9 :UInt64;
}

struct LogLine {
  wallNanoseconds @0 :Int64;
  role @1 :Role;
  index @2 :UInt32;
  level @3 :UInt8;  # 0 debug, 1 info, 2 warn, 3 error
  text @4 :Text;
}

# task -> chief: new log lines, as the task writes them. chief -> client: the answer to LogsRequest. Nobody answers
# LogLines.
struct LogLines {
  lines @0 :List(LogLine);
  dropped @1 :UInt64;
}

# ---------------------------------------------------------------------------------------------- Checkpoints
# common/messages/checkpoint.h shows the order of these messages.

# chief -> every ps. The ps creates the files of its shards in the attempt's folder and reserves all disk space for
# them. It answers with CheckpointPrepared or CheckpointFailed, before any worker has to wait.
struct PrepareCheckpoint {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
  folder @3 :Text;
  holds @4 :Bool;  # if true, the shards apply nothing after the cut
}

struct CheckpointPrepared {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
}

# chief -> the ps of the pacer, sync. The pacer cuts when step `at` is committed, or at once if that step has passed.
struct TakeCut {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
  at @3 :UInt64;
}

# chief -> every worker, async and ssp. The worker sends a Mark on every channel before its next push.
struct MarkChannels {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
}

# chief -> every ps. The attempt is abandoned: the shards answer the marks that they hold, so that the workers go on.
# The chief removes the files that were written.
struct AbandonCheckpoint {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
}

struct WorkerEntry {
  worker @0 :Member;
  last @1 :UInt64;
  clock @2 :UInt64;
  batches @3 :UInt64;  # shard 0, sharding = "none": how many batches of its order the worker has done
}

# ps -> chief, for each shard, when the shard's file is written and synced.
struct ShardWritten {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
  shard @3 :UInt32;
  version @4 :UInt64;
  words @5 :UInt64;  # of 4 bytes
  workers @6 :List(WorkerEntry);
  file @7 :File;
  pacer @8 :PacerReport;  # only for shard 0
  cut @9 :Int64;          # nanoseconds, like the two fields below
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

# ps -> chief. The ps can't take this checkpoint, for example because the disk is full. Its shards are healthy, and
# training goes on.
struct CheckpointFailed {
  job @0 :UInt32;
  generation @1 :UInt64;
  attempt @2 :UInt64;
  code @3 :ErrorCode;
  reason @4 :Text;
}

# ---------------------------------------------------------------------------------------------- Command line and chief

# client -> chief: submits a job. The chief answers with JobSubmitted, or with Refused if the job is bad, the queue is
# full or the name is taken.
struct SubmitJob {
  jobToml @0 :Text;  # whole, with absolute paths
  warmupSteps @1 :UInt64;
  goesOn @2 :Bool;  # if a job with this name and text hasn't ended yet, follow that job instead of refusing this one
  awaitedWorkers @3 :UInt32;  # how many workers the job waits for before it begins; later only minWorkers counts
}

struct JobSubmitted {
  job @0 :UInt32;
  ahead @1 :UInt32;
  wasThere @2 :Bool;  # true: the job was submitted before and still goes on
}

# client -> chief: asks for a job's status. The chief answers with StatusAnswer, at once or when the job has ended.
struct StatusRequest {
  job @0 :Text;
  all @1 :Bool;
  waitForEnd @2 :Int64;  # how long to wait for the job's end, in nanoseconds; 0: not at all
}

struct StatusAnswer {
  json @0 :Text;
}

# client -> chief: stops or kills a job. The chief answers with RequestDone when the job is ending, or with Refused.
struct StopRequest {
  job @0 :Text;
  kill @1 :Bool;
}

# client -> chief: submits a job that has failed or was stopped again, with the same file. The chief answers with
# JobSubmitted, or with Refused.
struct ResubmitRequest {
  job @0 :Text;
}

# client -> chief: asks for log lines. The chief answers with one LogLines. With `follow` it sends more LogLines as
# lines are written.
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

# client -> chief: asks for a checkpoint now. The chief answers with CheckpointSaved when the checkpoint is committed,
# or with Refused.
struct SaveRequest {
  job @0 :Text;
}

struct CheckpointSaved {
  path @0 :Text;
  step @1 :UInt64;
}

# client -> chief: asks for a job's events. The chief answers with one EventsAnswer. With `follow` it sends more
# EventsAnswers as events happen.
struct EventsRequest {
  job @0 :Text;
  all @1 :Bool;
  follow @2 :Bool;
  most @3 :UInt32;  # at most this many of the newest events that the chief remembers; 0: all of them
}

struct EventsAnswer {
  json @0 :Text;
}

# ---------------------------------------------------------------------------------------------- Channels
# The frame's header has the job, the generation and the sequence. The frame's payload has the tensor bytes.

enum Want { nothing @0; bucket @1; all @2; }
enum PushOutcome { none @0; applied @1; skipped @2; late @3; duplicate @4; finished @5; vetoed @6; }

# worker -> shard: one bucket of gradients. A push consists of all frames of one step on one channel; in its last frame,
# `last` is true. If `want` asks for parameters, the shard answers with Parameters, otherwise with Acknowledge.
struct Push {
  bucket @0 :UInt32;
  examples @1 :UInt32;       # valid only in the last frame; so are loss, epoch, lease, visited and final
  clock @2 :UInt64;
  pullVersion @3 :UInt64;
  loss @4 :Float32;
  epoch @5 :UInt32;
  lease @6 :UInt64;
  want @7 :Want;
  last @8 :Bool;
  skipped @9 :Bool;
  visited @10 :List(Interval);
  final @11 :Bool;  # the worker won't push before its next lease, or never again, so ssp no longer waits for it
  roster @12 :UInt64;  # sync with leases: the roster to which the push's records were lent
  initial @13 :Bool;  # the payload is the first values of the bucket, as Acknowledge.wantsValues asked for
}

# worker -> shard: asks for parameters without a push. The shard answers with one Parameters per bucket.
struct Pull {
  id @0 :UInt64;
  begins @1 :Bool;  # ssp: the sender becomes active, and from now on the other workers wait for its pushes
  clock @2 :UInt64;  # if `begins`: the clock of the sender's last push
  averages @3 :Bool;  # the answer has the moving averages of the parameters
}

# shard -> worker: one bucket of parameters, all of the same version.
struct Parameters {
  version @0 :UInt64;
  roster @1 :UInt64;
  pullId @2 :UInt64;
  acknowledged @3 :UInt64;
  bucket @4 :UInt32;
  outcome @5 :PushOutcome;
  last @6 :Bool;
  finished @7 :Bool;
  clock @8 :UInt64;  # in the answer to a Pull with `begins`: the worker's clock from now on
  averages @9 :Bool;  # in the answer to a Pull with `averages`: the payload has the moving averages
}

# shard -> worker: returns credits without parameters.
struct Acknowledge {
  acknowledged @0 :UInt64;
  outcome @1 :PushOutcome;
  finished @2 :Bool;
  # The model brings its initial values, and the shard has none yet. The worker sends them, as Push frames with
  # `initial`. Meanwhile its pull waits.
  wantsValues @3 :Bool;
}

# worker -> shard, async and ssp: the pushes before this mark belong to the checkpoint, later pushes don't. The worker
# sends nothing more on this channel until MarkTaken.
struct Mark {
  attempt @0 :UInt64;
}

# shard -> worker: the shard has cut, or the attempt is abandoned. The worker goes on.
struct MarkTaken {
  attempt @0 :UInt64;
}

# ---------------------------------------------------------------------------------------------- Shards and their pacer

# shard -> pacer, sync: says which members' pushes this shard has staged for a step. The shard sends this report when it
# has staged the pushes of all members of the roster, or of at least `aggregate` members. Whenever it stages one more
# push, it sends a new report. The pacer sends Commit when the pushes of enough members are staged at all shards.
struct Staged {
  shard @0 :UInt32;
  nonfinite @1 :Bool;
  step @2 :UInt64;
  norm2 @3 :Float64;
  roster @4 :UInt64;  # version of the roster that the shard has now
  ranks @5 :List(UInt64);  # a bit set: bit r of word w is rank 64 w + r of the roster; without zero words at the end
}

# pacer -> every other shard, sync. The shard commits step `step`: it applies the mean of the pushes of `ranks`, summed
# in the order of the ranks.
struct Commit {
  step @0 :UInt64;
  scale @1 :Float64;
  skip @2 :Bool;
  ranks @3 :List(UInt64);    # a bit set, as in Staged
  rosterVersion @4 :UInt64;  # version of the roster to which the ranks belong
}

# pacer -> every other shard. The pacer sends it when the roster changes and when a shard connects. In async and ssp the
# pacer also sends it when the job has done all its steps.
struct PacerNews {
  finished @0 :Bool;
  roster @1 :Roster;
}

# pacer -> every other shard, sync. The shard cuts now, between two commits.
struct Cut {
  attempt @0 :UInt64;
}
