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
  b.setPsTimeout(v.ps_timeout.count());
  b.setWorkersTimeout(v.workers_timeout.count());
  b.setOnFailure(write_enum<schema::OnFailure>(v.on_failure));
  b.setMaxResubmits(v.max_resubmits);
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
  v.ps_timeout = read_duration(r.getPsTimeout(), "ps timeout");
  v.workers_timeout = read_duration(r.getWorkersTimeout(), "workers timeout");
  v.on_failure = read_enum(r.getOnFailure(), OnFailure::kResubmit, "on failure");
  v.max_resubmits = r.getMaxResubmits();
  return v;
}

constexpr std::size_t kMaxColumnWords = 1 << 16;

static void write_words(capnp::List<capnp::Text>::Builder b, const std::vector<std::string>& words) {
  for (unsigned i = 0; i < b.size(); ++i) b.set(i, write_path(words[i], "word"));
}

static std::vector<std::string> read_words(capnp::List<capnp::Text>::Reader r, const char* what) {
  std::vector<std::string> words;
  for (const auto word : bounded(r, kMaxColumnWords, what)) words.push_back(read_path(word, what));
  return words;
}

static std::optional<double> read_optional(bool has, double number, const char* what) {
  return has ? std::optional(read_finite(number, what)) : std::nullopt;
}

static void write(const ColumnSection& v, schema::DataColumn::Builder b) {
  b.setName(write_path(v.name, "name"));
  b.setKind(write_enum<schema::ColumnKind>(v.kind));
  b.setFrom(write_path(v.from, "from"));
  b.setHasMissing(v.missing.has_value());
  b.setMissing(v.missing.value_or(0.0));
  b.setNormalise(write_enum<schema::Normalise>(v.normalise));
  b.setHasMean(v.mean.has_value());
  b.setMean(v.mean.value_or(0.0));
  b.setHasDeviation(v.deviation.has_value());
  b.setDeviation(v.deviation.value_or(0.0));
  auto boundaries = b.initBoundaries(list_size(v.boundaries, kMaxColumnWords, "boundaries"));
  for (unsigned i = 0; i < boundaries.size(); ++i) boundaries.set(i, v.boundaries[i]);
  write_words(b.initVocabulary(list_size(v.vocabulary, kMaxColumnWords, "vocabulary")), v.vocabulary);
  b.setHash(v.hash);
  write_words(b.initCross(list_size(v.cross, kMaxColumnWords, "cross")), v.cross);
  b.setStrip(write_path(v.strip, "strip"));
  auto shape = b.initShape(list_size(v.shape, kMaxDimensions, "shape"));
  for (unsigned i = 0; i < shape.size(); ++i) shape.set(i, v.shape[i]);
  b.setCrop(v.crop);
  b.setFlip(v.flip);
  b.setZeroBased(v.zero_based);
  b.setOneHot(v.one_hot);
  b.setMinCount(v.min_count);
  b.setTokenizer(write_path(v.tokenizer, "tokenizer"));
  b.setLimit(v.limit);
  b.setLength(v.length);
  b.setPad(v.pad);
  b.setTruncate(write_enum<schema::Truncate>(v.truncate));
  b.setSpecialTokens(v.special_tokens);
  b.setWithLength(v.with_length);
  b.setPadTo(write_enum<schema::PadTo>(v.pad_to));
}

static ColumnSection read(schema::DataColumn::Reader r) {
  ColumnSection v;
  v.name = read_path(r.getName(), "name");
  v.kind = read_enum(r.getKind(), ColumnKind::kBytes, "kind");
  v.from = read_path(r.getFrom(), "from");
  v.missing = read_optional(r.getHasMissing(), r.getMissing(), "missing");
  v.normalise = read_enum(r.getNormalise(), Normalise::kStandard, "normalise");
  v.mean = read_optional(r.getHasMean(), r.getMean(), "mean");
  v.deviation = read_optional(r.getHasDeviation(), r.getDeviation(), "deviation");
  for (const double boundary : bounded(r.getBoundaries(), kMaxColumnWords, "boundaries"))
    v.boundaries.push_back(read_finite(boundary, "boundary"));
  v.vocabulary = read_words(r.getVocabulary(), "vocabulary");
  v.hash = r.getHash();
  v.cross = read_words(r.getCross(), "cross");
  v.strip = read_path(r.getStrip(), "strip");
  for (const std::uint32_t size : bounded(r.getShape(), kMaxDimensions, "shape")) v.shape.push_back(size);
  v.crop = r.getCrop();
  v.flip = r.getFlip();
  v.zero_based = r.getZeroBased();
  v.one_hot = r.getOneHot();
  v.min_count = r.getMinCount();
  v.tokenizer = read_path(r.getTokenizer(), "tokenizer");
  v.limit = r.getLimit();
  v.length = r.getLength();
  v.pad = r.getPad();
  v.truncate = read_enum(r.getTruncate(), Truncate::kNone, "truncate");
  v.special_tokens = r.getSpecialTokens();
  v.with_length = r.getWithLength();
  v.pad_to = read_enum(r.getPadTo(), PadTo::kLongest, "padTo");
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
  b.setShuffleWindow(v.shuffle_window);
  b.setMemory(v.memory);
  b.setIndex(write_path(v.index, "index"));
  b.setThreads(v.threads);
  b.setTokenizer(write_path(v.tokenizer, "tokenizer"));
  b.setBucketBy(write_path(v.bucket_by, "bucketBy"));
  b.setBucketWindow(v.bucket_window);
  b.setScale(v.scale);
  b.setMix(v.mix);
  b.setMaxExpansion(v.max_expansion);
  b.setPrefetch(v.prefetch);
  b.setWindow(v.window);
  b.setStride(v.stride);
  auto columns = b.initColumns(list_size(v.columns, kMaxColumns, "columns"));
  for (unsigned i = 0; i < columns.size(); ++i) write(v.columns[i], columns[i]);
  write_words(b.initMissing(list_size(v.missing, kMaxColumnWords, "missing")), v.missing);
}

static DataSection read(schema::DataSection::Reader r) {
  DataSection v;
  v.format = read_enum(r.getFormat(), DataFormat::kParquet, "format");
  v.path = read_path(r.getPath(), "path");
  v.files = read_path(r.getFiles(), "files");
  v.labels = read_path(r.getLabels(), "labels");
  v.records = {r.getRecordsBegin(), r.getRecordsEnd()};
  v.sharding = read_enum(r.getSharding(), Sharding::kNone, "sharding");
  v.shuffle = read_enum(r.getShuffle(), ShuffleKind::kBlocks, "shuffle");
  v.shuffle_buffer = r.getShuffleBuffer();
  v.shuffle_window = r.getShuffleWindow();
  v.memory = r.getMemory();
  v.index = read_path(r.getIndex(), "index");
  v.threads = r.getThreads();
  v.tokenizer = read_path(r.getTokenizer(), "tokenizer");
  v.bucket_by = read_path(r.getBucketBy(), "bucketBy");
  v.bucket_window = r.getBucketWindow();
  v.scale = read_finite(r.getScale(), "scale");
  v.mix = read_finite(r.getMix(), "mix");
  v.max_expansion = r.getMaxExpansion();
  v.prefetch = r.getPrefetch();
  v.window = r.getWindow();
  v.stride = r.getStride();
  for (const auto column : bounded(r.getColumns(), kMaxColumns, "columns")) v.columns.push_back(read(column));
  v.missing = read_words(r.getMissing(), "missing");
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
  b.setProfileFirst(v.profile_steps[0]);
  b.setProfileLast(v.profile_steps[1]);
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
  v.profile_steps = {r.getProfileFirst(), r.getProfileLast()};
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
  b.setRecordsBegin(v.records[0]);
  b.setRecordsEnd(v.records[1]);
  b.setBatchSize(v.batch_size);
  b.setMetric(write_name(v.metric, "metric"));
  b.setBetter(write_enum<schema::Better>(v.better));
  b.setStopAfter(v.stop_after);
  b.setKeepBest(v.keep_best);
}

static EvaluateSection read(schema::EvaluateSection::Reader r) {
  EvaluateSection v;
  v.path = read_path(r.getPath(), "path");
  v.files = read_path(r.getFiles(), "files");
  v.labels = read_path(r.getLabels(), "labels");
  v.every_steps = r.getEverySteps();
  v.average = read_finite(r.getAverage(), "average");
  v.records = {r.getRecordsBegin(), r.getRecordsEnd()};
  v.batch_size = r.getBatchSize();
  v.metric = read_name(r.getMetric(), "metric");
  v.better = read_enum(r.getBetter(), Better::kLower, "better");
  v.stop_after = r.getStopAfter();
  v.keep_best = r.getKeepBest();
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
