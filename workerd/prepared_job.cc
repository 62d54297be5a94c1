#include "workerd/prepared_job.h"

#include "common/config/columns.h"
#include "common/config/reader/reader.h"
#include "common/counted.h"
#include "common/memory_plan.h"
#include "input/fits.h"
#include "input/mixed_dataset.h"
#include "input/numbered_dataset.h"
#include "input/parquet/parquet_functions.h"

namespace disttrain::workerd {

namespace {

bool has_data(const JobConfig& config) {
  return !config.data.files.empty();
}

// Reads a data set. If there is an engine, checks that the data fits its model.
Result<std::unique_ptr<input::Dataset>> load(input::Source source, const PreparedJob& prepared, const Engine* engine) {
  source.is_cancelled = prepared.is_cancelled;
  source.parquet = &input::parquet_functions();
  source.target_taker = input::target_taker(prepared.config.model);
  source.sigmoid_outputs = sigmoid_outputs(prepared.config.model);
  if (engine != nullptr) input::keep_types_of(engine->describe(), source);
  Result<std::unique_ptr<input::Dataset>> data = input::load_dataset(source);
  if (data && engine != nullptr)
    if (Status ok = input::fits(**data, engine->describe(), prepared.config.model, source); !ok)
      data = tl::unexpected(ok.error());
  if (!data) prepared.on_data_error(data.error().code);
  return data;
}

Status load_training(PreparedJob& prepared, const Engine* engine) {
  Result<std::unique_ptr<input::Dataset>> training =
      load(input::training_source(prepared.config.data), prepared, engine);
  if (!training) return tl::unexpected(training.error());
  prepared.training = std::move(*training);
  return {};
}

// Checks that the engine takes the full batches of a data set and the smaller one at its end. `whose` names the set and
// the batches' size in the error.
Status check_batches(const Engine& engine, Program program, std::uint64_t records, std::uint64_t batch_records,
                     const std::string& whose) {
  const auto checked = [&](std::uint64_t examples, const std::string& which) -> Status {
    Status taken = engine.takes(program, examples);
    if (!taken)
      taken.error().message = which + " has " + counted(examples, "record") + " (" + whose + " in batches of " +
                              std::to_string(batch_records) + "): " + taken.error().message;
    return taken;
  };
  const std::uint64_t rest = records % batch_records;
  if (records >= batch_records)
    if (Status full = checked(batch_records, "a batch"); !full) return full;
  return rest == 0 ? Status() : checked(rest, "the last batch");
}

Status check_evaluation(const PreparedJob& prepared) {
  const std::uint64_t records = prepared.evaluation->records();
  return check_batches(*prepared.engine, Program::kEvaluate, records, evaluation_batch_records(prepared.config),
                       std::to_string(records) + " evaluation records");
}

Status check_evaluates(const Engine& engine) {
  if (engine.describe().programs.evaluates) return {};
  return fail(ErrorCode::kConfig,
              "the job has [evaluate], but its model has no program that evaluates: export it with one, or give the "
              "trainer a function by job.on_evaluate()");
}

std::unique_ptr<PreparedJob> begin_job(JobId job, const JobConfig& config, const EngineWorld& world,
                                       const OnDataError& on_data_error) {
  const bool has_trainer = !config.model.trainer.empty();
  auto prepared = std::make_unique<PreparedJob>(has_trainer ? ArenaKind::kShared : world.arena);
  prepared->job = job;
  prepared->is_cancelled = world.is_cancelled;
  prepared->on_data_error = on_data_error;
  prepared->config = config;
  return prepared;
}

// The columns of the records, for a trainer. Sets the sizes of the model that follow from them.
std::vector<ColumnSpec> take_columns(const input::Dataset& records, PreparedJob& prepared) {
  const JobConfig& config = prepared.config;
  ModelSection& model = prepared.config.model;
  if (takes_vocabulary(config)) input::size_vocabulary(records, model);
  if (!config.data.columns.empty()) input::size_model(*records.fitted_columns(), config.data, model);
  return input::columns_of(records, config.data.scale);
}

// A job that ends within the first epoch may never reach the last batch. Its batches are checked when they occur.
Status check_training_batches(const PreparedJob& prepared) {
  const TrainSection& train = prepared.config.train;
  const std::uint64_t records = prepared.training->records();
  const bool ends_before = train.steps != 0 && train.steps <= records / train.step_records();
  const std::uint64_t checked = ends_before ? train.batch_size : records;
  return check_batches(*prepared.engine, Program::kStep, checked, train.batch_size,
                       std::to_string(records) + " training records");
}

}  // namespace

std::string PreparedJob::notice_of_unknown() const {
  return evaluation ? input::notice_of_unknown(*evaluation, config.data.columns) : "";
}

std::string PreparedJob::take_notice_of_unknown() {
  if (has_told_unknown) return "";
  std::string notice = notice_of_unknown();
  has_told_unknown = !notice.empty();
  return notice;
}

Result<std::unique_ptr<PreparedJob>> prepare_job(JobId job, const JobConfig& config, const EngineFactory& make_engine,
                                                 const EngineWorld& world, const OnDataError& on_data_error) {
  if (Status sane = config::check_ranges(config); !sane) return tl::unexpected(sane.error());
  const bool has_trainer = !config.model.trainer.empty();
  const bool has_columns = !config.data.columns.empty() || !config.data.tokenizer.empty();
  std::unique_ptr<PreparedJob> prepared = begin_job(job, config, world, on_data_error);
  // A trainer takes whatever columns the data has, so it must know them first. Sizes of a model may follow from
  // [data.columns], a tokenizer and the files. Other models are built first, because a wrong model is found faster than
  // data is read.
  std::vector<ColumnSpec> columns;
  if ((has_trainer || has_columns) && has_data(config)) {
    if (Status loaded = load_training(*prepared, nullptr); !loaded) return tl::unexpected(loaded.error());
    columns = take_columns(*prepared->training, *prepared);
  }
  Result<MadeEngine> made = make_engine(prepared->config, columns, prepared->arena, world);
  if (!made) return tl::unexpected(made.error());
  prepared->engine = std::move(made->engine);
  if (!has_data(config)) {
    prepared->training = input::make_numbered_dataset(made->training_records);
    if (made->evaluation_records > 0) prepared->evaluation = input::make_numbered_dataset(made->evaluation_records);
  } else if (!prepared->training) {
    if (Status loaded = load_training(*prepared, prepared->engine.get()); !loaded)
      return tl::unexpected(loaded.error());
  } else if (!has_trainer) {
    if (Status ok = input::fits(*prepared->training, prepared->engine->describe(), config.model,
                                input::training_source(config.data));
        !ok) {
      on_data_error(ok.error().code);
      return tl::unexpected(ok.error());
    }
  }
  if (config.data.mix > 0.0) {
    if (Status ok =
            input::can_mix(*prepared->training, prepared->engine->describe().columns, !config.model.builtin.empty());
        !ok)
      return tl::unexpected(ok.error());
    prepared->training = input::make_mixed_dataset(std::move(prepared->training), config.data.mix);
  }
  if (prepared->training->records() > 0)
    if (Status taken = check_training_batches(*prepared); !taken) return tl::unexpected(taken.error());
  return prepared;
}

Result<std::unique_ptr<PreparedJob>> prepare_evaluation(JobId job, const JobConfig& config,
                                                        std::shared_ptr<const input::FittedColumns> fitted,
                                                        const EngineFactory& make_engine, const EngineWorld& world) {
  if (Status sane = config::check_ranges(config); !sane) return tl::unexpected(sane.error());
  std::unique_ptr<PreparedJob> prepared = begin_job(job, config, world, [](ErrorCode) {});
  input::Source source = input::evaluation_source(config.data, config.evaluate);
  source.fitted = std::move(fitted);
  Result<std::unique_ptr<input::Dataset>> records = load(source, *prepared, nullptr);
  if (!records) return tl::unexpected(records.error());
  prepared->evaluation = std::move(*records);
  const std::vector<ColumnSpec> columns = take_columns(*prepared->evaluation, *prepared);
  Result<MadeEngine> made = make_engine(prepared->config, columns, prepared->arena, world);
  if (!made) return tl::unexpected(made.error());
  prepared->engine = std::move(made->engine);
  if (Status ok = check_evaluates(*prepared->engine); !ok) return tl::unexpected(ok.error());
  if (config.model.trainer.empty())
    if (Status ok = input::fits(*prepared->evaluation, prepared->engine->describe(), config.model, source); !ok)
      return tl::unexpected(ok.error());
  if (Status ok = check_evaluation(*prepared); !ok) return tl::unexpected(ok.error());
  return prepared;
}

Status load_evaluation(PreparedJob& prepared) {
  if (prepared.evaluation || prepared.config.evaluate.files.empty()) return {};
  if (Status ok = check_evaluates(*prepared.engine); !ok) return ok;
  input::Source source = input::evaluation_source(prepared.config.data, prepared.config.evaluate);
  source.label_names = prepared.training->label_names();
  source.header = prepared.training->header();
  source.fitted = prepared.training->fitted_columns();
  for (const input::DatasetColumn& column : prepared.training->columns()) {
    if (column.name == "inputs") source.record_shape = column.shape;
    if (column.name == "labels") source.label_shape = column.shape;
  }
  Result<std::unique_ptr<input::Dataset>> evaluation = load(std::move(source), prepared, prepared.engine.get());
  if (!evaluation) return tl::unexpected(evaluation.error());
  prepared.evaluation = std::move(*evaluation);
  return check_evaluation(prepared);
}

}  // namespace disttrain::workerd
