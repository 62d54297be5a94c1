// The rules between two or more keys of job.toml. Those within [model] are in model_keys.cc.
#include <string>
#include <vector>

#include "common/config/columns.h"
#include "common/config/reader/keys.h"

namespace disttrain::config {

void only_with(Reading& reading, bool applies, const std::string& section, const std::vector<std::string>& keys,
               const std::string& with) {
  if (applies) return;
  for (const std::string& key : keys)
    if (reading.has(section + key))
      reading.refuse(section + key, section + key + " has a meaning only with " + with + "; leave it out");
}

namespace {

void check_optimizer(const OptimizerConfig& optimizer, Reading& reading) {
  const Rule rule = optimizer.rule;
  const bool is_adam = rule == Rule::kAdam || rule == Rule::kAdamw || rule == Rule::kLamb;
  const std::string section = "train.optimizer.";
  only_with(reading, rule == Rule::kMomentum || rule == Rule::kNesterov || rule == Rule::kRmsprop, section,
            {"momentum"}, "rule = \"momentum\", \"nesterov\" or \"rmsprop\"");
  only_with(reading, is_adam, section, {"beta1", "beta2"}, "rule = \"adam\", \"adamw\" or \"lamb\"");
  only_with(reading, rule == Rule::kRmsprop, section, {"rho"}, "rule = \"rmsprop\"");
  only_with(reading, is_adam || rule == Rule::kAdagrad || rule == Rule::kRmsprop, section, {"epsilon"},
            "rule = \"adagrad\", \"rmsprop\", \"adam\", \"adamw\" or \"lamb\"");
  only_with(reading, rule == Rule::kFtrl, section, {"l1", "l2"}, "rule = \"ftrl\"");
  only_with(reading, optimizer.weight_decay > 0.0, section, {"weight_decay_of"}, "weight_decay above 0");
}

void check_schedule(const ScheduleConfig& schedule, Reading& reading) {
  const ScheduleKind kind = schedule.kind;
  const bool is_periodic = kind == ScheduleKind::kStep || kind == ScheduleKind::kExponential;
  const bool is_decay = kind == ScheduleKind::kPolynomial || kind == ScheduleKind::kCosine;
  const std::string section = "train.schedule.";
  only_with(reading, is_periodic, section, {"every_steps", "factor"}, "kind = \"step\" or \"exponential\"");
  only_with(reading, is_decay, section, {"decay_steps", "end_factor"}, "kind = \"polynomial\" or \"cosine\"");
  only_with(reading, kind == ScheduleKind::kPolynomial, section, {"power"}, "kind = \"polynomial\"");
  if (is_periodic && schedule.every_steps == 0)
    reading.refuse(
        section + "every_steps",
        "train.schedule.every_steps is the period; it must be above 0 with kind = \"step\" or \"exponential\"");
  if (is_decay && schedule.decay_steps == 0)
    reading.refuse(section + "decay_steps",
                   "train.schedule.decay_steps is the number of steps until the rate stops changing; it must be above "
                   "0 with kind = \"polynomial\" or \"cosine\"");
}

void check_train(const TrainSection& train, Reading& reading) {
  if (train.steps == 0 && train.epochs == 0 && !reading.is_refused("train.steps") &&
      !reading.is_refused("train.epochs") && !reading.has_unknown("train"))
    reading.refuse("train",
                   "train.steps and train.epochs are both 0 (or left out), so the training would never end; "
                   "set at least one of them");
  if (train.step_records() > kMaxStepRecords && !reading.is_refused("train.batch_size") &&
      !reading.is_refused("train.accumulate"))
    reading.refuse("train.accumulate", "train.batch_size times train.accumulate is " +
                                           std::to_string(train.step_records()) +
                                           " records per step; expected at most " + std::to_string(kMaxStepRecords) +
                                           ": lower one of the two");
  only_with(reading, train.mode == Mode::kSync || train.aggregate == 0, "train.", {"aggregate"}, "mode = \"sync\"");
  only_with(reading, train.mode == Mode::kSsp, "train.", {"staleness"}, "mode = \"ssp\"");
  check_optimizer(train.optimizer, reading);
  const bool is_rate_constant = train.schedule.kind == ScheduleKind::kConstant && train.schedule.warmup_steps == 0 &&
                                !train.scale_learning_rate_linear;
  if (train.optimizer.rule == Rule::kFtrl && !is_rate_constant)
    reading.refuse("train.optimizer.rule",
                   "train.optimizer.rule = \"ftrl\" lowers the rate of each parameter by itself and needs a constant "
                   "learning rate, because its parameters are proportional to this rate; leave out train.schedule and "
                   "train.scale_learning_rate");
  if (train.optimizer.rule == Rule::kLamb && train.mode != Mode::kSync && !reading.is_refused("train.mode"))
    reading.refuse("train.optimizer.rule",
                   "train.optimizer.rule = \"lamb\" needs the whole gradient of a variable, and only train.mode = "
                   "\"sync\" waits for it; set the mode to \"sync\", or use the rule \"adamw\"");
  check_schedule(train.schedule, reading);
  if (train.clip.kind != ClipKind::kNone && train.clip.value <= 0.0)
    reading.refuse("train.clip.value", "train.clip.value must be above 0, because train.clip.kind isn't \"none\"");
  if (train.clip.kind == ClipKind::kNone && train.clip.value != 0.0)
    reading.refuse(
        "train.clip.value",
        "train.clip.value has a meaning only with kind = \"global_norm\" or \"value\"; set it to 0 or leave it out");
}

void check_data(const DataSection& data, Reading& reading) {
  const bool is_refused = reading.is_refused("data.path") || reading.is_refused("data.files");
  if (data.path.empty() != data.files.empty() && !is_refused)
    reading.refuse(data.path.empty() ? "data.files" : "data.path",
                   "data.path and data.files belong together; set both, or leave both out with model.trainer");
  const bool is_text = data.format == DataFormat::kText;
  only_with(reading, is_text, "data.", {"window", "stride", "tokenizer"}, "format = \"text\"");
  // A file may set these two keys to values that change nothing.
  only_with(reading, !is_text || data.labels.empty(), "data.", {"labels"}, "another format than \"text\"");
  only_with(reading, !is_text || data.scale == 1.0, "data.", {"scale"}, "another format than \"text\"");
}

// Mixing takes floats: inputs, and labels as a number for each class.
void check_mix(const JobConfig& job, Reading& reading) {
  const DataSection& data = job.data;
  if (data.mix == 0.0) return;
  const auto refuse = [&reading](const std::string& why) { reading.refuse("data.mix", "data.mix " + why); };
  if (!job.model.trainer.empty())
    return refuse("has no meaning for model.trainer, which gets records as they are; mix them in the script");
  if (data.format == DataFormat::kText || job.model.builtin == "transformer")
    return refuse("can't mix tokens, only numbers; set it to 0");
  if (job.model.builtin == "matrix_factorization") return refuse("can't mix users and items; set it to 0");
  for (const ColumnSection& column : data.columns)
    if (is_category(column) || is_sequence(column) || is_weight(column))
      return refuse("can't mix data.columns." + column.name +
                    ", only numbers, images and labels; set data.mix to 0, or " +
                    (is_category(column) && column.cross.empty() ? "data.columns." + column.name + ".one_hot to true"
                                                                 : "leave the column out"));
  if (data.shuffle == ShuffleKind::kBlocks)
    refuse(
        "takes a second record from anywhere in the data set, but data.shuffle = \"blocks\" reads blocks; set one of "
        "them to another value");
}

// The trace lies beside TensorBoard's event files, and those are in the folder of the job's checkpoints.
void check_profile(const JobConfig& job, Reading& reading) {
  const TrainSection& train = job.train;
  if (!train.has_profile()) return;
  if (job.checkpoint.directory.empty() && !reading.is_refused("checkpoint.directory"))
    reading.refuse("train.profile_steps",
                   "train.profile_steps takes a trace, but the job has no folder for it, because the trace is written "
                   "beside TensorBoard's event files, in the folder \"events\" of the job's checkpoints; set "
                   "checkpoint.directory, or leave train.profile_steps out");
  if (train.steps != 0 && train.profile_steps[0] > train.steps)
    reading.refuse("train.profile_steps", "train.profile_steps begins at step " +
                                              std::to_string(train.profile_steps[0]) +
                                              ", but train.steps ends the job at step " + std::to_string(train.steps) +
                                              "; profile earlier steps");
}

void check_checkpoint(const CheckpointSection& checkpoint, Reading& reading) {
  // If the file sets the directory to "", the job takes no checkpoints, but the file may still set these keys.
  only_with(reading, reading.has("checkpoint.directory"), "checkpoint.",
            {"every_steps", "every", "keep", "keep_every_steps", "at_end", "restore"},
            "checkpoint.directory, where checkpoints go");
  only_with(reading, !checkpoint.init_from.empty(), "checkpoint.", {"init_map"}, "checkpoint.init_from");
}

}  // namespace

void set_dependent_defaults(JobConfig& job) {
  if (job.model.builtin == "cnn") job.model.dropout = 0.5;
  if (job.model.builtin == "matrix_factorization") job.model.loss = Loss::kMse;
  if (job.train.optimizer.rule == Rule::kRmsprop) job.train.optimizer.momentum = 0.0;
  if (job.train.optimizer.rule == Rule::kAdagrad) job.train.optimizer.epsilon = 1e-10;
  if (job.train.optimizer.rule == Rule::kLamb) job.train.optimizer.epsilon = 1e-6;
}

void check_job_rules(const JobConfig& job, Reading& reading) {
  check_model(job.model, job.data.columns, reading);
  if (reading.has("train")) check_train(job.train, reading);
  check_data(job.data, reading);
  check_columns(job, reading);
  check_mix(job, reading);
  if (job.data.scale == 0.0)
    reading.refuse("data.scale", "data.scale is 0, which would make all values 0; set another number");
  if (job.train.optimizer.rule == Rule::kLamb && job.job.placement == Placement::kPartitioned)
    reading.refuse("job.placement",
                   "job.placement = \"partitioned\" cuts variables, but train.optimizer.rule = \"lamb\" needs each "
                   "variable whole on one shard; set the placement to \"balanced\"");
  check_checkpoint(job.checkpoint, reading);
  check_profile(job, reading);
  if (job.job.on_worker_loss == OnWorkerLoss::kWait && (job.train.mode != Mode::kSync || job.train.aggregate != 0))
    reading.refuse("job.on_worker_loss",
                   "job.on_worker_loss = \"wait\" has a meaning only with train.mode = \"sync\" and without "
                   "train.aggregate, because otherwise a step doesn't need every worker; set it to \"shrink\"");
  // If the file sets evaluate.files to "", the job has no evaluation, but the file may still set these keys.
  only_with(reading, reading.has("evaluate.files"), "evaluate.", {"path", "labels", "records"},
            "evaluate.files, the files to evaluate on");
  // A trainer may have evaluation data of its own.
  only_with(reading, reading.has("evaluate.files") || !job.model.trainer.empty(), "evaluate.",
            {"every_steps", "batch_size", "metric", "better", "stop_after", "keep_best"},
            "evaluate.files, the files to evaluate on");
  if (job.evaluate.keep_best > 0 && job.checkpoint.directory.empty())
    reading.refuse("evaluate.keep_best", "evaluate.keep_best is " + std::to_string(job.evaluate.keep_best) +
                                             ", but the job takes no checkpoints: set checkpoint.directory");
  if (job.job.on_failure == OnFailure::kResubmit && job.checkpoint.directory.empty())
    reading.refuse("job.on_failure",
                   "job.on_failure is \"resubmit\", but the job takes no checkpoints, so it would begin anew: set "
                   "checkpoint.directory");
  only_with(reading, job.job.on_failure == OnFailure::kResubmit, "job.", {"max_resubmits"},
            "job.on_failure = \"resubmit\"");
  if (job.evaluate.metric != "loss" && job.evaluate.stop_after == 0 && job.evaluate.keep_best == 0)
    reading.refuse("evaluate.metric", "evaluate.metric is \"" + job.evaluate.metric +
                                          "\", but only evaluate.stop_after and evaluate.keep_best use it: set one of "
                                          "these, or remove evaluate.metric");
}

}  // namespace disttrain::config
