#include "workerd/job_engine.h"

#include <asio/post.hpp>
#include <utility>

#include "engine/factory.h"
#include "engine/trainer/trainer_engine.h"

namespace disttrain::workerd {

namespace {

Result<MadeEngine> make_trainer(const JobConfig& config, const std::vector<ColumnSpec>& columns, Arena& arena,
                                const EngineWorld& world) {
  TrainerOptions options;
  options.command = {config.model.trainer, config.model.folder, world.threads};
  options.columns = columns;
  options.batch_size = config.train.batch_size;
  options.seed = config.job.seed;
  options.start_timeout = config.model.start_timeout;
  // The worker gives up before the chief does. So the chief learns which trainer hangs.
  options.answer_timeout = config.job.stall_timeout * 3 / 4;
  Result<std::unique_ptr<TrainerEngine>> engine = TrainerEngine::make(
      std::move(options),
      TrainerWorld{world.loop, arena, world.is_cancelled, world.on_line, world.on_checkpoint, world.worker_count});
  if (!engine) return tl::unexpected(engine.error());
  const TrainerModel& model = (*engine)->model();
  if (columns.empty() && model.records == 0)
    return fail(ErrorCode::kConfig,
                "the job has no [data], and the trainer names no data set: pass one to job.batches(), or set data.path "
                "and data.files");
  MadeEngine made{nullptr, model.records, model.evaluation_records};
  made.engine = std::move(*engine);
  return made;
}

}  // namespace

Result<MadeEngine> make_job_engine(const JobConfig& config, const std::vector<ColumnSpec>& columns, Arena& arena,
                                   const EngineWorld& world, const std::string& device) {
  if (!config.model.trainer.empty()) return make_trainer(config, columns, arena, world);
  Result<std::unique_ptr<Engine>> engine =
      make_engine(config.model, device, world.threads,
                  [&loop = world.loop](std::function<void()> task) { asio::post(loop, std::move(task)); });
  if (!engine) return tl::unexpected(engine.error());
  return MadeEngine{std::move(*engine), 0, 0};
}

}  // namespace disttrain::workerd
