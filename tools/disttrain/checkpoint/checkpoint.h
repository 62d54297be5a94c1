// Shared by the checkpoint verbs: finds checkpoints by the path that was typed.
#pragma once

#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/manifest.h"
#include "common/result.h"

namespace disttrain::cli {

// The path as checkpoint::Files takes it: absolute, without a slash at its end.
std::string absolute_path(const std::string& path);

// All checkpoints of a folder: itself if it is a checkpoint, else those of the job, or of all jobs, that it holds; each
// job's newest first. Empty: it holds none. kNoInput: there is no such folder.
Result<std::vector<checkpoint::Found>> checkpoints_in(checkpoint::Files& files, const std::string& folder);

// The parts of a path "<directory>/<job>/<checkpoint>".
std::string name_of_checkpoint(const checkpoint::Found& found);
std::string name_of_job(const checkpoint::Found& found);

std::uint64_t element_count(const checkpoint::VariableEntry& variable);

}  // namespace disttrain::cli
