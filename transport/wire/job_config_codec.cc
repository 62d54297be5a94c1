// The codec of a job's settings. The chief has read them from job.toml and filled in all defaults.
#include "transport/wire/pieces.h"

namespace disttrain::wire {
static void write(const JobSection& v, schema::JobSection::Builder b) {
  b.setName(write_name(v.name, "name"));
  b.setSeed(v.seed);
  b.setShards(v.shards);
  b.setPlacement(write_enum<schema::Placement>(v.placement));
  b.setMinWorkers(v.min_workers);
  b.setOnWorkerLoss(write_enum<schema::OnWorkerLoss>(v.on_worker_loss));
  b.setMaxRestarts(v.max_restarts);
  b.setRestartWindow(v.restart_window.count());
  b.setStallTimeout(v.stall_timeout.count());
}

static JobSection read(schema::JobSection::Reader r) {
  JobSection v;
  v.name = read_name(r.getName(), "name");
  v.seed = r.getSeed();
  v.shards = r.getShards();
  v.placement = read_enum(r.getPlacement(), Placement::kPartitioned, "placement");
  v.min_workers = r.getMinWorkers();
  v.on_worker_loss = read_enum(r.getOnWorkerLoss(), OnWorkerLoss::kWait, "on worker loss");
  v.max_restarts = r.getMaxRestarts();
  v.restart_window = read_duration(r.getRestartWindow(), "restart window");
  v.stall_timeout = read_duration(r.getStallTimeout(), "stall timeout");
  return v;
}

static void write(const DataSection& v, schema::DataSection::Builder b) {
  b.setFormat(write_enum<schema::DataFormat>(v.format));
  b.setPath(write_path(v.path, "path"));
  b.setFiles(write_path(v.files, "files"));
  b.setLabels(write_path(v.labels, "labels"));
  b.setRecordsBegin(v.records[0]);
  b.setRecordsEnd(v.records[1]);
  b.setSharding(write_enum<schema::Sharding>(v.sharding));
  b.setShuffle(write_enum<schema::ShuffleKind>(v.shuffle));
  b.setShuffleBuffer(v.shuffle_buffer);
  b.setScale(v.scale);
  b.setPrefetch(v.prefetch);
  b.setWindow(v.window);
  b.setStride(v.stride);
}

static DataSection read(schema::DataSection::Reader r) {
  DataSection v;
  v.format = read_enum(r.getFormat(), DataFormat::kText, "format");
  v.path = read_path(r.getPath(), "path");
  v.files = read_path(r.getFiles(), "files");
  v.labels = read_path(r.getLabels(), "labels");
  v.records = {r.getRecordsBegin(), r.getRecordsEnd()};
  v.sharding = read_enum(r.getSharding(), Sharding::kNone, "sharding");
  v.shuffle = read_enum(r.getShuffle(), ShuffleKind::kNone, "shuffle");
  v.shuffle_buffer = r.getShuffleBuffer();
  v.scale = read_finite(r.getScale(), "scale");
  v.prefetch = r.getPrefetch();
  v.window = r.getWindow();
  v.stride = r.getStride();
  return v;
}

static void write(const OptimizerConfig& v, schema::Optimizer::Builder b) {
  b.setRule(write_enum<schema::Rule>(v.rule));
  b.setLearningRate(v.learning_rate);
  b.setWeightDecay(v.weight_decay);
  b.setWeightDecayOf(write_enum<schema::DecayOf>(v.weight_decay_of));
  b.setMomentum(v.momentum);
  b.setBeta1(v.beta1);
  b.setBeta2(v.beta2);
  b.setRho(v.rho);
  b.setEpsilon(v.epsilon);
  b.setL1(v.l1);
  b.setL2(v.l2);
}

static OptimizerConfig read(schema::Optimizer::Reader r) {
  OptimizerConfig v;
  v.rule = read_enum(r.getRule(), Rule::kFtrl, "rule");
  v.learning_rate = read_finite(r.getLearningRate(), "learning rate");
  v.weight_decay = read_finite(r.getWeightDecay(), "weight decay");
  v.weight_decay_of = read_enum(r.getWeightDecayOf(), DecayOf::kMatrices, "weight decay of");
  v.momentum = read_finite(r.getMomentum(), "momentum");
  v.beta1 = read_finite(r.getBeta1(), "beta1");
  v.beta2 = read_finite(r.getBeta2(), "beta2");
  v.rho = read_finite(r.getRho(), "rho");
  v.epsilon = read_finite(r.getEpsilon(), "epsilon");
  v.l1 = read_finite(r.getL1(), "l1");
  v.l2 = read_finite(r.getL2(), "l2");
  return v;
}

static void write(const ScheduleConfig& v, schema::Schedule::Builder b) {
  b.setKind(write_enum<schema::ScheduleKind>(v.kind));
  b.setWarmupSteps(v.warmup_steps);
  b.setEverySteps(v.every_steps);
  b.setFactor(v.factor);
  b.setDecaySteps(v.decay_steps);
  b.setPower(v.power);
  b.setEndFactor(v.end_factor);
}

static ScheduleConfig read(schema::Schedule::Reader r) {
  ScheduleConfig v;
  v.kind = read_enum(r.getKind(), ScheduleKind::kCosine, "kind");
  v.warmup_steps = r.getWarmupSteps();
  v.every_steps = r.getEverySteps();
  v.factor = read_finite(r.getFactor(), "factor");
  v.decay_steps = r.getDecaySteps();
  v.power = read_finite(r.getPower(), "power");
  v.end_factor = read_finite(r.getEndFactor(), "end factor");
  return v;
}

static void write(const ClipConfig& v, schema::Clip::Builder b) {
  b.setKind(write_enum<schema::ClipKind>(v.kind));
  b.setValue(v.value);
}

static ClipConfig read(schema::Clip::Reader r) {
  ClipConfig v;
  v.kind = read_enum(r.getKind(), ClipKind::kValue, "kind");
  v.value = read_finite(r.getValue(), "value");
  return v;
}

static void write(const NonfiniteConfig& v, schema::Nonfinite::Builder b) {
  b.setAction(write_enum<schema::NonfiniteAction>(v.action));
  b.setLimit(v.limit);
}

static NonfiniteConfig read(schema::Nonfinite::Reader r) {
  NonfiniteConfig v;
  v.action = read_enum(r.getAction(), NonfiniteAction::kFail, "action");
  v.limit = r.getLimit();
  return v;
}

static void write(const TrainSection& v, schema::TrainSection::Builder b) {
  b.setMode(write_enum<schema::Mode>(v.mode));
  b.setAggregate(v.aggregate);
  b.setStaleness(v.staleness);
  b.setPipeline(v.pipeline);
  b.setBatchSize(v.batch_size);
  b.setEpochs(v.epochs);
  b.setSteps(v.steps);
  write(v.optimizer, b.initOptimizer());
  write(v.schedule, b.initSchedule());
  b.setScaleLearningRateLinear(v.scale_learning_rate_linear);
  write(v.clip, b.initClip());
  write(v.nonfinite, b.initNonfinite());
  b.setAccumulate(v.accumulate);
  b.setState(write_enum<schema::StateRule>(v.state));
}

static TrainSection read(schema::TrainSection::Reader r) {
  TrainSection v;
  v.mode = read_enum(r.getMode(), Mode::kSsp, "mode");
  v.aggregate = r.getAggregate();
  v.staleness = r.getStaleness();
  v.pipeline = r.getPipeline();
  v.batch_size = r.getBatchSize();
  v.epochs = r.getEpochs();
  v.steps = r.getSteps();
  v.optimizer = read(r.getOptimizer());
  v.schedule = read(r.getSchedule());
  v.scale_learning_rate_linear = r.getScaleLearningRateLinear();
  v.clip = read(r.getClip());
  v.nonfinite = read(r.getNonfinite());
  v.accumulate = r.getAccumulate();
  v.state = read_enum(r.getState(), StateRule::kLowestRank, "state");
  return v;
}

static void write(const CheckpointSection& v, schema::CheckpointSection::Builder b) {
  b.setDirectory(write_path(v.directory, "directory"));
  b.setEverySteps(v.every_steps);
  b.setEvery(v.every.count());
  b.setKeep(v.keep);
  b.setKeepEverySteps(v.keep_every_steps);
  b.setAtEnd(v.at_end);
  b.setRestore(write_enum<schema::Restore>(v.restore));
  b.setInitFrom(write_path(v.init_from, "init from"));
  write_name_map(b.initInitMap(map_size(v.init_map, "init map")), v.init_map);
}

static CheckpointSection read(schema::CheckpointSection::Reader r) {
  CheckpointSection v;
  v.directory = read_path(r.getDirectory(), "directory");
  v.every_steps = r.getEverySteps();
  v.every = read_duration(r.getEvery(), "every");
  v.keep = r.getKeep();
  v.keep_every_steps = r.getKeepEverySteps();
  v.at_end = r.getAtEnd();
  v.restore = read_enum(r.getRestore(), Restore::kNone, "restore");
  v.init_from = read_path(r.getInitFrom(), "init from");
  v.init_map = read_name_map(r.getInitMap(), "init map");
  return v;
}

static void write(const EvaluateSection& v, schema::EvaluateSection::Builder b) {
  b.setPath(write_path(v.path, "path"));
  b.setFiles(write_path(v.files, "files"));
  b.setLabels(write_path(v.labels, "labels"));
  b.setEverySteps(v.every_steps);
  b.setAverage(v.average);
  b.setBatchSize(v.batch_size);
}

static EvaluateSection read(schema::EvaluateSection::Reader r) {
  EvaluateSection v;
  v.path = read_path(r.getPath(), "path");
  v.files = read_path(r.getFiles(), "files");
  v.labels = read_path(r.getLabels(), "labels");
  v.every_steps = r.getEverySteps();
  v.average = read_finite(r.getAverage(), "average");
  v.batch_size = r.getBatchSize();
  return v;
}

void write(const JobConfig& v, schema::JobConfig::Builder b) {
  write(v.job, b.initJob());
  write(v.model, b.initModel());
  write(v.data, b.initData());
  write(v.train, b.initTrain());
  write(v.checkpoint, b.initCheckpoint());
  write(v.evaluate, b.initEvaluate());
}

JobConfig read(schema::JobConfig::Reader r) {
  JobConfig v;
  v.job = read(r.getJob());
  v.model = read(r.getModel());
  v.data = read(r.getData());
  v.train = read(r.getTrain());
  v.checkpoint = read(r.getCheckpoint());
  v.evaluate = read(r.getEvaluate());
  return v;
}

}  // namespace disttrain::wire
