// The model of a job, as far as the command line can know it.
#pragma once

#include <optional>

#include "common/config/job_config.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain::cli {

// A builtin model follows from its keys. A program's model is in its package, which must be on this host. A trainer
// says only when it runs what its model is, and a model may take sizes from the words of the data files or
// from a tokenizer: then the result is none. Errors: those of builtin_model() and of program::Package::open().
Result<std::optional<ModelSpec>> model_of_job(const JobConfig& job);

}  // namespace disttrain::cli
