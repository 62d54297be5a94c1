#include "tools/disttrain/model_of_job.h"

#include "common/builtin/builtin.h"
#include "common/checkpoint/disk_files.h"
#include "common/program/package.h"

namespace disttrain::cli {

Result<std::optional<ModelSpec>> model_of_job(const ModelSection& model) {
  if (!model.trainer.empty()) return std::optional<ModelSpec>();
  if (model.program.empty()) {
    Result<ModelSpec> spec = builtin_model(model);
    if (!spec) return tl::unexpected(spec.error());
    return std::optional(std::move(*spec));
  }
  checkpoint::DiskFiles files;
  const Result<program::Package> package = program::Package::open(files, model.program);
  if (!package) return tl::unexpected(package.error());
  return std::optional(package->sidecar().model);
}

}  // namespace disttrain::cli
