#include "workerd/prepared_job.h"

#include "common/config/reader/reader.h"
#include "workerd/input/fits.h"

namespace disttrain::workerd {

namespace {

Result<std::unique_ptr<input::Dataset>> load(input::Source source, const PreparedJob& prepared) {
  source.is_cancelled = prepared.is_cancelled;
  Result<std::unique_ptr<input::Dataset>> data = input::load_dataset(source);
  if (data)
    if (Status ok = input::fits(**data, prepared.engine->describe(), prepared.config.model, source); !ok)
      data = tl::unexpected(ok.error());
  if (!data) prepared.on_data_error(data.error().code);
  return data;
}

}  // namespace

Result<std::unique_ptr<PreparedJob>> prepare_job(JobId job, const JobConfig& config, const EngineFactory& make_engine,
                                                 const EngineWorld& world, const input::IsCancelled& is_cancelled,
                                                 const OnDataError& on_data_error) {
  auto prepared = std::make_unique<PreparedJob>();
  prepared->job = job;
  prepared->is_cancelled = is_cancelled;
  prepared->on_data_error = on_data_error;
  if (Status sane = config::check_ranges(config); !sane) return tl::unexpected(sane.error());
  prepared->config = config;
  Result<std::unique_ptr<Engine>> engine = make_engine(prepared->config, world);
  if (!engine) return tl::unexpected(engine.error());
  prepared->engine = std::move(*engine);
  Result<std::unique_ptr<input::Dataset>> training = load(input::training_source(prepared->config.data), *prepared);
  if (!training) return tl::unexpected(training.error());
  prepared->training = std::move(*training);
  return prepared;
}

Status load_evaluation(PreparedJob& prepared) {
  if (prepared.evaluation || prepared.config.evaluate.files.empty()) return {};
  input::Source source = input::evaluation_source(prepared.config.data, prepared.config.evaluate);
  source.label_names = prepared.training->label_names();
  Result<std::unique_ptr<input::Dataset>> evaluation = load(std::move(source), prepared);
  if (!evaluation) return tl::unexpected(evaluation.error());
  prepared.evaluation = std::move(*evaluation);
  return {};
}

}  // namespace disttrain::workerd
