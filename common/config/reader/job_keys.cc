// The keys of job.toml, one row each. The rules between keys are in job_rules.cc. The keys of [model] are in
// model_keys.cc.
#include <limits>

#include "common/config/reader/keys.h"

namespace disttrain::config {

using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kAnyCount = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kAnySize = std::numeric_limits<std::int64_t>::max();

// A command line takes a word that begins with "-" for an option. A number could be the number of another job.
bool is_job_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxJobNameBytes && name.front() != '-' &&
         name.find_first_not_of("0123456789") != std::string::npos &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

bool is_not_empty(const std::string& text) {
  return !text.empty();
}

// "epoch", "blocks", "none", or a buffer's size.
Field shuffle(DataSection& to) {
  const std::string expected = "\"epoch\", \"blocks\", \"none\" or the size of a buffer (records, at least 1)";
  return Field{expected,
               [&to, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* word = value.as<std::string>();
                 const auto* size = value.as<std::int64_t>();
                 if (word != nullptr && *word == "epoch") {
                   to.shuffle = ShuffleKind::kEpoch;
                 } else if (word != nullptr && *word == "blocks") {
                   to.shuffle = ShuffleKind::kBlocks;
                 } else if (word != nullptr && *word == "none") {
                   to.shuffle = ShuffleKind::kNone;
                 } else if (size != nullptr && *size >= 1) {
                   to.shuffle = ShuffleKind::kBuffer;
                   to.shuffle_buffer = static_cast<std::uint64_t>(*size);
                 } else {
                   refuse_value(value, path, expected, reading);
                 }
               },
               [&to] {
                 if (to.shuffle == ShuffleKind::kBuffer)
                   return std::optional(toml(static_cast<std::int64_t>(to.shuffle_buffer)));
                 return std::optional(toml(std::string(to.shuffle == ShuffleKind::kEpoch    ? "epoch"
                                                       : to.shuffle == ShuffleKind::kBlocks ? "blocks"
                                                                                            : "none")));
               }};
}

// [begin, end), or [] for all.
Field records(std::array<std::uint64_t, 2>& to) {
  const std::string expected = "[first, end] with 0 <= first < end, or [] for all";
  return Field{expected,
               [&to, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* items = value.as<TomlValue::Array>();
                 if (items != nullptr && items->empty()) return void(to = {0, 0});
                 const auto* first = items != nullptr && items->size() == 2 ? (*items)[0].as<std::int64_t>() : nullptr;
                 const auto* end = first != nullptr ? (*items)[1].as<std::int64_t>() : nullptr;
                 if (end == nullptr || *first < 0 || *first >= *end)
                   return refuse_value(value, path, expected, reading);
                 to = {static_cast<std::uint64_t>(*first), static_cast<std::uint64_t>(*end)};
               },
               [&to] {
                 TomlValue::Array items;
                 if (to[1] != 0)
                   for (std::uint64_t bound : to) items.push_back(toml(static_cast<std::int64_t>(bound)));
                 return std::optional(TomlValue{std::move(items), {}});
               }};
}

// [first, last], or [] for none. The last step is part of the range.
Field profile_steps(std::array<std::uint64_t, 2>& to) {
  const std::string expected = "[first, last] with 1 <= first <= last and at most " +
                               std::to_string(kMaxProfiledSteps) + " steps, or [] for none";
  return Field{expected,
               [&to, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* items = value.as<TomlValue::Array>();
                 if (items != nullptr && items->empty()) return void(to = {0, 0});
                 const auto* first = items != nullptr && items->size() == 2 ? (*items)[0].as<std::int64_t>() : nullptr;
                 const auto* last = first != nullptr ? (*items)[1].as<std::int64_t>() : nullptr;
                 if (last == nullptr || *first < 1 || *first > *last ||
                     static_cast<std::uint64_t>(*last - *first) >= kMaxProfiledSteps)
                   return refuse_value(value, path, expected, reading);
                 to = {static_cast<std::uint64_t>(*first), static_cast<std::uint64_t>(*last)};
               },
               [&to] {
                 TomlValue::Array items;
                 if (to[1] != 0)
                   for (std::uint64_t bound : to) items.push_back(toml(static_cast<std::int64_t>(bound)));
                 return std::optional(TomlValue{std::move(items), {}});
               }};
}

Keys identity_keys(JobSection& job) {
  return {
      {"name",
       required(text_of(job.name,
                        "a name of at most " + std::to_string(kMaxJobNameBytes) +
                            " letters a-z, digits and \"-\", which doesn't begin with \"-\" and isn't a number",
                        is_job_name)),
       "no other queued or running job may have this name. It doesn't begin with \"-\", and isn't a number, because "
       "command lines also name jobs by their numbers"},
      {"seed", integer(job.seed, 0, kAnySize), "seed of the random initial values, shuffling and dropout"},
      {"exchange", not_in_this_version("ps"), "how gradients travel"},
      {"shards", integer_or("auto", job.shards, 1, 4096), "number of shards"},
      {"placement",
       choice<Placement>(job.placement, {{"balanced", Placement::kBalanced},
                                         {"round_robin", Placement::kRoundRobin},
                                         {"greedy", Placement::kGreedy},
                                         {"partitioned", Placement::kPartitioned}}),
       "how variables are assigned to shards; with the update rule lamb, balanced deals whole variables"},
      {"min_workers", integer(job.min_workers, 1, kAnyCount),
       "the fewest workers with which the job runs; with fewer, it doesn't begin, or pauses if it has begun"},
      {"on_worker_loss",
       choice<OnWorkerLoss>(job.on_worker_loss, {{"shrink", OnWorkerLoss::kShrink}, {"wait", OnWorkerLoss::kWait}}),
       "shrink: go on without a lost worker; wait: wait for another in its place"},
      {"max_restarts", integer(job.max_restarts, 0, kAnyCount),
       "how many losses within restart_window may roll the job back; one more fails the job. A worker that is lost "
       "more often than this can't rejoin"},
      {"restart_window", duration(job.restart_window, 1s, 720h), "see max_restarts"},
      {"stall_timeout", duration(job.stall_timeout, 1s, 24h),
       "if no step is made for this time, the job fails, and names what it waited for. The loss of a worker restarts "
       "this time, but no later than restart_window after the first loss without a step"},
      {"ps_timeout", duration(job.ps_timeout, 0s, 720h),
       "how long the job waits for ps tasks, from when the chief misses them, before it fails; \"0s\" = until they are "
       "back. A job that has begun waits for at least 10 heartbeat timeouts, or 15 if the ps is silent, because other "
       "ps tasks may take the shards. Without this key, `up` on its own cluster sets \"2m\""},
      {"workers_timeout", duration(job.workers_timeout, 0s, 720h),
       "how long the job waits for workers that it lacks (min_workers, on_worker_loss), before it fails; \"0s\" = "
       "until "
       "they are there. Without this key, `up` on its own cluster sets \"2m\""},
      {"on_failure", choice<OnFailure>(job.on_failure, {{"end", OnFailure::kEnd}, {"resubmit", OnFailure::kResubmit}}),
       "end: a failed job stays failed; resubmit: the chief submits it again, and it goes on from its newest "
       "checkpoint. A job that failed before it trained isn't submitted again, except if it waited in vain for tasks"},
      {"max_resubmits", integer(job.max_resubmits, 1, kAnyCount),
       "how often on_failure = \"resubmit\" submits the job again; the next failure is final"},
  };
}

// `is_needed`: whether the job must have data files. A trainer may read data of its own.
Keys data_keys(DataSection& data, bool is_needed) {
  const auto needed = [is_needed](Field field) { return is_needed ? required(std::move(field)) : field; };
  return {
      {"format",
       choice<DataFormat>(data.format, {{"idx", DataFormat::kIdx},
                                        {"csv", DataFormat::kCsv},
                                        {"npy", DataFormat::kNpy},
                                        {"text", DataFormat::kText},
                                        {"tfrecord", DataFormat::kTfrecord},
                                        {"libsvm", DataFormat::kLibsvm},
                                        {"jsonl", DataFormat::kJsonl},
                                        {"webdataset", DataFormat::kWebdataset},
                                        {"images", DataFormat::kImages},
                                        {"npz", DataFormat::kNpz},
                                        {"parquet", DataFormat::kParquet}}),
       "of the files"},
      {"path", needed(not_if_empty(text_of(data.path, "a folder", is_not_empty), data.path)), "folder of the files"},
      {"files",
       needed(not_if_empty(text_of(data.files, "a pattern of file names in data.path", is_not_empty), data.files)),
       "the records"},
      {"labels", text(data.labels), "pattern of the names of the label files; \"\" = the usual names for the format"},
      {"records", records(data.records), "part of the records"},
      {"sharding", choice<Sharding>(data.sharding, {{"lease", Sharding::kLease}, {"none", Sharding::kNone}}),
       "lease: an epoch visits each record once; none: each worker visits all records"},
      {"shuffle", shuffle(data), "order of the records"},
      {"shuffle_window", integer(data.shuffle_window, 1, 1 << 20),
       "shuffle = \"blocks\": number of blocks whose records are shuffled together"},
      {"bucket_by", not_if_empty(text(data.bucket_by), data.bucket_by),
       "a column of tokens or bytes: records of about the same length come into the same batch"},
      {"bucket_window", integer(data.bucket_window, 1, 1 << 20),
       "bucket_by: the records of so many batches are sorted by length together"},
      {"scale", real(data.scale, {-kNoLimit, true, kNoLimit, true}), "each value of a record is multiplied by this"},
      {"mix", real(data.mix, {0.0, true, 1.0, true}),
       "mixes each training record with another one: l * record + (1 - l) * other, l from Beta(mix, mix)"},
      {"columns", data_columns(data.columns),
       "what becomes of each column of the files; csv files without it have numbers, and the label in the last column"},
      {"missing", texts(data.missing, 1000),
       "with columns: words that mean that a value is missing, beside the empty one"},
      {"tokenizer", not_if_empty(text(data.tokenizer), data.tokenizer),
       "text: a tokenizer.json or a SentencePiece .model that makes tokens of the text; without it, tokens are bytes"},
      {"window", integer(data.window, 1, 1 << 24), "text: tokens of a record"},
      {"stride", integer_or("auto", data.stride, 1, 1 << 24),
       "text: tokens from the begin of a record to that of the next one; auto = window - 1"},
      {"max_expansion", integer(data.max_expansion, 1, 1 << 20),
       "a compressed file may have so many times its bytes of content; up to 64 MiB it always may"},
      {"prefetch", integer(data.prefetch, 1, 1024),
       "number of batches to read ahead or, if that is more, as many as fit into 4 MiB (at most 8)"},
      {"memory", size_or_auto(data.memory),
       "the most memory for the records on each worker; records of larger data sets are read again for each batch"},
      {"index", text(data.index), "folder for the indexes of data files; without it, they are beside the data"},
      {"threads", integer_or("auto", data.threads, 1, 256), "threads that make batches"},
  };
}

Keys optimizer_keys(OptimizerConfig& optimizer) {
  return {
      {"rule",
       choice<Rule>(optimizer.rule, {{"sgd", Rule::kSgd},
                                     {"momentum", Rule::kMomentum},
                                     {"nesterov", Rule::kNesterov},
                                     {"adagrad", Rule::kAdagrad},
                                     {"rmsprop", Rule::kRmsprop},
                                     {"adam", Rule::kAdam},
                                     {"adamw", Rule::kAdamw},
                                     {"lamb", Rule::kLamb},
                                     {"ftrl", Rule::kFtrl}}),
       "update rule"},
      {"learning_rate", real(optimizer.learning_rate, above(0.0)), "step size"},
      {"weight_decay", real(optimizer.weight_decay, at_least(0.0)),
       "weight of the L2 term that is added to the gradient; adamw shrinks the parameter itself instead, and lamb adds "
       "the term to the direction of its update"},
      {"weight_decay_of",
       choice<DecayOf>(optimizer.weight_decay_of, {{"all", DecayOf::kAll}, {"matrices", DecayOf::kMatrices}}),
       "all variables, or only those of two or more dimensions: not biases and weights of normalizations"},
      {"momentum", real(optimizer.momentum, {0.0, true, 1.0, false}), "momentum, nesterov, rmsprop"},
      {"beta1", real(optimizer.beta1, {0.0, true, 1.0, false}), "adam, adamw, lamb"},
      {"beta2", real(optimizer.beta2, {0.0, true, 1.0, false}), "adam, adamw, lamb"},
      {"rho", real(optimizer.rho, {0.0, true, 1.0, false}), "rmsprop"},
      {"epsilon", real(optimizer.epsilon, above(0.0)), "adagrad, rmsprop, adam, adamw, lamb"},
      {"l1", real(optimizer.l1, at_least(0.0)), "ftrl: weight of the L1 term, which makes small parameters 0"},
      {"l2", real(optimizer.l2, at_least(0.0)), "ftrl: weight of the L2 term"},
  };
}

Keys schedule_keys(ScheduleConfig& schedule) {
  return {
      {"kind",
       choice<ScheduleKind>(schedule.kind, {{"constant", ScheduleKind::kConstant},
                                            {"step", ScheduleKind::kStep},
                                            {"exponential", ScheduleKind::kExponential},
                                            {"polynomial", ScheduleKind::kPolynomial},
                                            {"cosine", ScheduleKind::kCosine}}),
       "how the learning rate changes"},
      {"warmup_steps", integer(schedule.warmup_steps, 0, kAnySize),
       "the learning rate grows linearly from 0 during this many steps"},
      {"every_steps", integer(schedule.every_steps, 0, kAnySize), "step, exponential: the period in steps"},
      {"factor", real(schedule.factor, above(0.0)), "step, exponential: each period multiplies the rate by this"},
      {"decay_steps", integer(schedule.decay_steps, 0, kAnySize),
       "polynomial, cosine: steps until the rate stops changing"},
      {"power", real(schedule.power, above(0.0)), "polynomial"},
      {"end_factor", real(schedule.end_factor, {0.0, true, 1.0, true}),
       "polynomial, cosine: the share of the rate that is left at the end"},
  };
}

Keys clip_keys(ClipConfig& clip) {
  return {
      {"kind",
       choice<ClipKind>(
           clip.kind, {{"none", ClipKind::kNone}, {"global_norm", ClipKind::kGlobalNorm}, {"value", ClipKind::kValue}}),
       "of gradients"},
      {"value", real(clip.value, at_least(0.0)),
       "global_norm: the largest norm; value: the largest absolute value of an element"},
  };
}

Keys nonfinite_keys(NonfiniteConfig& nonfinite) {
  return {
      {"action",
       choice<NonfiniteAction>(nonfinite.action, {{"skip", NonfiniteAction::kSkip}, {"fail", NonfiniteAction::kFail}}),
       "what to do with a step whose loss, gradient or state isn't finite"},
      {"limit", integer(nonfinite.limit, 0, kAnyCount),
       "the job fails after this many skipped steps in a row; 0 = it never does"},
  };
}

Keys train_keys(TrainSection& train) {
  return {
      {"mode", choice<Mode>(train.mode, {{"async", Mode::kAsync}, {"sync", Mode::kSync}, {"ssp", Mode::kSsp}}),
       "whether and how workers wait for each other"},
      {"aggregate", integer(train.aggregate, 0, kAnyCount),
       "sync: a step takes this many gradients and drops the rest; 0 = one from each worker"},
      {"staleness", integer(train.staleness, 0, kAnyCount),
       "ssp: how many steps the fastest worker may be ahead of the slowest"},
      {"pipeline", integer(train.pipeline, 0, 1),
       "1: a worker computes the next step while it exchanges this one with the ps"},
      {"batch_size", required(integer(train.batch_size, 1, kMaxStepRecords)),
       "records that a worker computes at a time"},
      {"accumulate", integer(train.accumulate, 1, kMaxStepRecords),
       "gradient accumulation: a worker computes this many batches in a step, and pushes the mean of their gradients "
       "once"},
      {"epochs", integer(train.epochs, 0, kAnySize), "0 = no limit"},
      {"steps", integer(train.steps, 0, kAnySize),
       "global steps; 0 = no limit. In sync the job makes exactly so many. In async and ssp the pushes that are under "
       "way "
       "at the last step count too: up to one more step for each worker, or two with pipeline = 1"},
      {"optimizer", section(optimizer_keys(train.optimizer)), ""},
      {"schedule", section(schedule_keys(train.schedule)), ""},
      {"scale_learning_rate", choice<bool>(train.scale_learning_rate_linear, {{"none", false}, {"linear", true}}),
       "linear: the learning rate is multiplied by the number of workers"},
      {"clip", section(clip_keys(train.clip)), ""},
      {"nonfinite", section(nonfinite_keys(train.nonfinite)), ""},
      {"state", choice<StateRule>(train.state, {{"mean", StateRule::kMean}, {"lowest_rank", StateRule::kLowestRank}}),
       "state variables, such as batch norm's statistics: the mean of the workers' values, or the value of the worker "
       "with the lowest rank"},
      {"profile_steps", profile_steps(train.profile_steps),
       "the first and the last global step of which a trace of all tasks is written; [] = no trace"},
      {"sum_order", not_in_this_version("rank"),
       "order in which sync sums gradients; \"rank\" gives the same bits in each run"},
  };
}

Keys checkpoint_keys(CheckpointSection& checkpoint) {
  return {
      {"directory", text(checkpoint.directory),
       "folder that the chief and every ps can write to; \"\" = no checkpoints"},
      {"every_steps", integer(checkpoint.every_steps, 0, kAnySize), "0 = not by steps"},
      {"every", duration(checkpoint.every, 0s, 720h), "\"0s\" = not by time"},
      {"keep", integer(checkpoint.keep, 1, kAnyCount), "how many of the newest checkpoints are kept"},
      {"keep_every_steps", integer(checkpoint.keep_every_steps, 0, kAnySize),
       "the first checkpoint at or after each multiple of this number of steps is kept for ever; 0 = none"},
      {"at_end", boolean(checkpoint.at_end), "take a checkpoint after the last step"},
      {"restore", choice<Restore>(checkpoint.restore, {{"newest", Restore::kNewest}, {"none", Restore::kNone}}),
       "newest: go on from the newest checkpoint; none: begin anew, and fail if there is a checkpoint"},
      {"init_from", text(checkpoint.init_from),
       "fine-tuning: a checkpoint or a safetensors file with the initial values; \"\" = the model's own, or those of "
       "model.initializer"},
      {"init_map",
       text_map(checkpoint.init_map, "a table of names such as { \"NAME IN THE FILE\" = \"NAME IN THE MODEL\" }"),
       "{ \"NAME IN init_from\" = \"NAME IN THE MODEL\" }"},
  };
}

Keys evaluate_keys(EvaluateSection& evaluate) {
  return {
      {"path", text(evaluate.path), "\"\" = data.path"},
      {"files", text(evaluate.files), "\"\" = no evaluation"},
      {"labels", text(evaluate.labels), "as data.labels"},
      {"records", records(evaluate.records), "part of the records"},
      {"every_steps", integer(evaluate.every_steps, 0, kAnySize), "0 = at the end only"},
      {"batch_size", integer(evaluate.batch_size, 0, kMaxStepRecords),
       "records that a worker evaluates at a time; 0 = train.batch_size, or 1000 for small builtin models"},
      {"average", real(evaluate.average, {0.0, true, 1.0, false}),
       "evaluate an exponential moving average (EMA) of the parameters, in which an update's parameters have the "
       "weight "
       "1 - average; 0 = the parameters themselves"},
      {"metric", printable_name(evaluate.metric),
       "the metric that stop_after and keep_best look at: \"loss\", or one of the model"},
      {"better",
       choice<Better>(evaluate.better,
                      {{"auto", Better::kAuto}, {"higher", Better::kHigher}, {"lower", Better::kLower}}),
       "which values of the metric are better; auto: as the metric's kind says"},
      {"stop_after", integer(evaluate.stop_after, 0, kAnyCount),
       "the job finishes early after so many evaluations in a row without a better value; 0 = never"},
      {"keep_best", integer(evaluate.keep_best, 0, kMaxKeptBest),
       "how many of the best evaluated checkpoints are kept; the best one is exported as best.safetensors"},
  };
}

}  // namespace

Keys job_keys(JobConfig& job) {
  const bool has_trainer = !job.model.trainer.empty();
  Field data = section(data_keys(job.data, !has_trainer));
  data.is_required = !has_trainer;
  return {
      {"job", required(section(identity_keys(job.job))), ""},
      {"model", required(section(model_keys(job.model))), ""},
      {"data", std::move(data), ""},
      {"train", required(section(train_keys(job.train))), ""},
      {"checkpoint", section(checkpoint_keys(job.checkpoint)), ""},
      {"evaluate", section(evaluate_keys(job.evaluate)), ""},
  };
}

}  // namespace disttrain::config
