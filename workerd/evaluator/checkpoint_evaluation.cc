#include "workerd/evaluator/checkpoint_evaluation.h"

#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "chiefd/core/placement.h"
#include "common/checkpoint/cancellable_files.h"
#include "common/checkpoint/kept_csv.h"
#include "common/checkpoint/weights.h"
#include "common/daemon/clock.h"
#include "common/memory_plan.h"
#include "input/keep_fitted.h"
#include "workerd/evaluation_run.h"
#include "workerd/parameters_hash.h"
#include "workerd/predict/single_computation.h"
#include "workerd/predict/stored_parameters.h"

namespace disttrain::workerd {

using checkpoint::Weights;

namespace {

// Returns what the checkpoint keeps of the training set. The result is empty if it keeps nothing, or if an evaluation
// needs none of it.
Result<std::vector<checkpoint::KeptColumn>> kept_in(const std::string& path, const JobConfig& config,
                                                    const std::function<bool()>& is_cancelled) {
  const bool may_keep = !config.data.columns.empty() || config.data.format == DataFormat::kCsv;
  if (!may_keep || config.evaluate.files.empty()) return std::vector<checkpoint::KeptColumn>();
  checkpoint::DiskFiles disk;
  checkpoint::CancellableFiles files(disk, is_cancelled);
  const Result<checkpoint::OpenCheckpoint> open = checkpoint::open_checkpoint(files, path);
  if (!open) return tl::unexpected(open.error());
  const auto kept = checkpoint::kept_columns(files, *open);
  if (!kept.has_value()) return tl::unexpected(kept.error());
  return kept->value_or(std::vector<checkpoint::KeptColumn>());
}

// Without [data.columns] the training set gives the test set the numbers of its labels and the places of its columns.
// So the training files of this host must have those with which the checkpoint was trained. The chief compares only the
// files of a worker.
Status check_csv(const std::vector<checkpoint::KeptColumn>& kept, const input::Dataset& training,
                 const std::string& path) {
  const std::optional<checkpoint::KeptCsv> csv = checkpoint::csv_of(kept);
  if (!csv) return {};
  const std::optional<std::string> what =
      checkpoint::difference(*csv, {.labels = training.label_names(), .header = training.header()});
  if (!what) return {};
  return fail(ErrorCode::kConfig,
              path + " was trained with other labels or columns than the csv files of the training set have on this " +
                  "host: " + *what + ": restore the files");
}

// With the training set. `path` and `kept` are those of the checkpoint.
Result<std::unique_ptr<PreparedJob>> prepare_whole(JobId job, const JobConfig& config, const std::string& path,
                                                   const std::vector<checkpoint::KeptColumn>& kept,
                                                   const EngineFactory& make_engine, const EngineWorld& world) {
  JobConfig unordered = config;
  unordered.data.bucket_by.clear();  // an evaluation reads a test set in its own order, so no lengths are needed
  Result<std::unique_ptr<PreparedJob>> prepared = prepare_job(job, unordered, make_engine, world, [](ErrorCode) {});
  if (!prepared) return tl::unexpected(prepared.error());
  if (config.data.columns.empty())
    if (Status ok = check_csv(kept, *(*prepared)->training, path); !ok) return tl::unexpected(ok.error());
  if (Status loaded = load_evaluation(**prepared); !loaded) return tl::unexpected(loaded.error());
  (*prepared)->training.reset();
  return prepared;
}

}  // namespace

Result<std::unique_ptr<CheckpointEvaluation>> CheckpointEvaluation::make(JobId job, const JobConfig& config,
                                                                         const std::string& path,
                                                                         const EngineFactory& make_engine,
                                                                         const EngineWorld& world) {
  const Result<std::vector<checkpoint::KeptColumn>> kept = kept_in(path, config, world.is_cancelled);
  if (!kept) return tl::unexpected(kept.error());
  const bool may_fit = !config.data.columns.empty() && !config.evaluate.files.empty();
  Result<std::shared_ptr<const input::FittedColumns>> fitted = nullptr;
  if (may_fit) fitted = input::fitted_from(config.data.columns, *kept);
  if (!fitted) return tl::unexpected(fitted.error());
  Result<std::unique_ptr<PreparedJob>> prepared =
      *fitted != nullptr ? prepare_evaluation(job, config, std::move(*fitted), make_engine, world)
                         : prepare_whole(job, config, path, *kept, make_engine, world);
  if (!prepared) return tl::unexpected(prepared.error());
  Result<Layout> layout = chiefd::place((*prepared)->engine->describe(), Placement::kBalanced, 1);
  if (!layout) return tl::unexpected(layout.error());
  return std::unique_ptr<CheckpointEvaluation>(
      new CheckpointEvaluation(std::move(*prepared), std::move(*layout), world.loop));
}

Result<Evaluated> CheckpointEvaluation::run(const std::string& path, const std::function<bool()>& is_cancelled,
                                            const std::function<bool()>& is_released) {
  const Instant began = daemon::now();
  try {
    const Result<Step> step = read(path, is_cancelled);
    if (!step) return tl::unexpected(step.error());
    Result<Evaluated> evaluated = evaluate(*step, is_cancelled, is_released);
    if (evaluated) evaluated->took = daemon::now() - began;
    return evaluated;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kConfig, "not enough memory to evaluate " +
                                        std::to_string(evaluation_batch_records(prepared_->config)) +
                                        " records at a time: set evaluate.batch_size to fewer");
  }
}

Result<Step> CheckpointEvaluation::read(const std::string& path, const std::function<bool()>& is_cancelled) {
  checkpoint::CancellableFiles files(files_, is_cancelled);
  Result<checkpoint::OpenCheckpoint> open = checkpoint::open_checkpoint(files, path);
  if (!open) return tl::unexpected(open.error());
  const Step step = open->manifest.step;
  const bool averages = prepared_->config.evaluate.average > 0.0 && open->manifest.has_average;
  Result<Weights> weights =
      Weights::of_checkpoint(files, std::move(*open), averages ? Weights::Slots::kAverage : Weights::Slots::kNone);
  if (!weights) return tl::unexpected(weights.error());
  if (!parameters_) {
    const std::uint64_t bytes = word_count(layout_.model) * sizeof(float);
    auto parameters = std::make_unique<Memory>(prepared_->arena, bytes, Paging::kOnDemand);
    auto gradients = std::make_unique<Memory>(prepared_->arena, bytes, Paging::kOnDemand);
    if (Status ok = prepared_->engine->open(layout_, parameters->floats(), gradients->floats()); !ok)
      return tl::unexpected(ok.error());
    // Only now: the chief repeats an order that has failed, and the engine must be open then.
    parameters_ = std::move(parameters);
    gradients_ = std::move(gradients);
  }
  if (Status ok = read_parameters(*weights, layout_, parameters_->floats()); !ok) return tl::unexpected(ok.error());
  return step;
}

Result<Evaluated> CheckpointEvaluation::evaluate(Step step, const std::function<bool()>& is_cancelled,
                                                 const std::function<bool()>& is_released) {
  EvaluationRun run(prepared_->evaluation.get(), prepared_->engine->describe(),
                    evaluation_batch_records(prepared_->config), hash_of_parameters(layout_, parameters_->floats()));
  SingleComputation computation(*prepared_->engine, loop_, is_released);
  for (;;) {
    const Result<std::optional<Batch>> batch = run.next();
    if (!batch.has_value()) return tl::unexpected(batch.error());
    if (!batch->has_value()) break;
    if (is_cancelled()) return fail(ErrorCode::kTemporary, "the evaluation was cancelled");
    const Result<EngineOutput> output = computation.run(Program::kEvaluate, **batch);
    if (!output) return tl::unexpected(output.error());
    run.add(*output);
  }
  const EvaluationDone done = run.done();
  Evaluated evaluated;
  evaluated.step = step;
  evaluated.examples = done.examples;
  if (done.examples > 0) evaluated.loss = done.loss_sum / static_cast<double>(done.examples);
  evaluated.metrics = done.metrics;
  evaluated.parameters_hash = done.parameters_hash;
  evaluated.notice = prepared_->notice_of_unknown();
  return evaluated;
}

}  // namespace disttrain::workerd
