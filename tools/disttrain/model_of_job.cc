#include "tools/disttrain/model_of_job.h"

#include "common/builtin/builtin.h"
#include "common/checkpoint/disk_files.h"
#include "common/config/columns.h"
#include "common/program/package.h"

namespace disttrain::cli {

Result<std::optional<ModelSpec>> model_of_job(const JobConfig& job) {
  const ModelSection& model = job.model;
  if (!model.trainer.empty()) return std::optional<ModelSpec>();
  if (takes_vocabulary(job)) return std::optional<ModelSpec>();  // it follows from the tokenizer
  if (model.program.empty()) {
    ModelSection sized = model;
    take_column_sizes(job.data.columns, 0, sized);
    const bool takes_sizes = model.wide_deep.categories.empty() || model.wide_deep.numeric == 0;
    if (model.builtin == "wide_deep" && takes_sizes && has_size_in_files(job.data.columns))
      return std::optional<ModelSpec>();
    Result<ModelSpec> spec = builtin_model(sized);
    if (!spec) return tl::unexpected(spec.error());
    return std::optional(std::move(*spec));
  }
  checkpoint::DiskFiles files;
  const Result<program::Package> package = program::Package::open(files, model.program);
  if (!package) return tl::unexpected(package.error());
  return std::optional(package->sidecar().model);
}

}  // namespace disttrain::cli
