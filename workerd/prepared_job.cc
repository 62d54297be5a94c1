#include "workerd/prepared_job.h"

#include "common/daemon/config_reader.h"
#include "workerd/input/fits.h"

namespace disttrain::workerd {

Result<std::unique_ptr<PreparedJob>> prepare_job(JobId job, const std::string& toml, const EngineFactory& make_engine,
                                                 std::uint32_t threads, const input::IsCancelled& is_cancelled) {
  auto prepared = std::make_unique<PreparedJob>();
  prepared->job = job;
  prepared->is_cancelled = is_cancelled;
  Result<JobConfig> config = daemon::read_job(toml);
  if (!config) return tl::unexpected(config.error());
  prepared->config = std::move(*config);
  Result<std::unique_ptr<Engine>> engine = make_engine(prepared->config.model, threads);
  if (!engine) return tl::unexpected(engine.error());
  prepared->engine = std::move(*engine);
  input::Source source = input::training_source(prepared->config.data);
  source.is_cancelled = is_cancelled;
  Result<std::unique_ptr<input::Dataset>> training = input::load_dataset(source);
  if (!training) return tl::unexpected(training.error());
  prepared->training = std::move(*training);
  if (Status ok = input::fits(*prepared->training, prepared->engine->describe()); !ok)
    return tl::unexpected(ok.error());
  return prepared;
}

Status load_evaluation(PreparedJob& prepared) {
  if (prepared.evaluation || prepared.config.evaluate.files.empty()) return {};
  input::Source source = input::evaluation_source(prepared.config.data, prepared.config.evaluate);
  source.label_names = prepared.training->label_names();
  source.is_cancelled = prepared.is_cancelled;
  Result<std::unique_ptr<input::Dataset>> evaluation = input::load_dataset(source);
  if (!evaluation) return tl::unexpected(evaluation.error());
  if (Status ok = input::fits(**evaluation, prepared.engine->describe(), "evaluate"); !ok) return ok;
  prepared.evaluation = std::move(*evaluation);
  return {};
}

}  // namespace disttrain::workerd
