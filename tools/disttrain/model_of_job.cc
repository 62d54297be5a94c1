#include "tools/disttrain/model_of_job.h"

#include <algorithm>

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
    const std::vector<std::uint32_t> categories = known_category_sizes(job.data.columns, 0);
    take_column_sizes(job.data.columns, categories, sized);
    const bool is_in_files = std::find(categories.begin(), categories.end(), 0U) != categories.end();
    if (is_in_files && model.wide_deep.categories.empty()) return std::optional<ModelSpec>();
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
