// What the verbs of checkpoints share: finding them by what is typed.
#pragma once

#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/manifest.h"
#include "common/result.h"

namespace disttrain::cli {

// As checkpoint::Files takes it: absolute, without a slash at its end.
std::string absolute_path(const std::string& path);

// All checkpoints that a folder means: itself if it is one, those of a job, or those of all jobs in it; a job's newest
// first. kNoInput: there is no such folder. None in it: none.
Result<std::vector<checkpoint::Found>> checkpoints_in(checkpoint::Files& files, const std::string& folder);

// Names of a path "<directory>/<job>/<checkpoint>".
std::string name_of_checkpoint(const checkpoint::Found& found);
std::string name_of_job(const checkpoint::Found& found);

std::uint64_t element_count(const checkpoint::VariableEntry& variable);

}  // namespace disttrain::cli
