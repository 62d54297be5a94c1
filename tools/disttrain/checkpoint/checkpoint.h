// Finds checkpoints by the path that the user typed. All checkpoint verbs share this.
#pragma once

#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/manifest.h"
#include "common/result.h"

namespace disttrain::cli {

// Makes a path absolute, without a slash at its end, because checkpoint::Files expects such paths.
std::string absolute_path(const std::string& path);

// Fails with kNoInput if the folder in which a verb is to make `out` doesn't exist, and with kNoPermission if this user
// can't write into it. `out` is absolute.
Status check_folder_of(const std::string& out);

// Returns the checkpoints that a folder holds, or none. The folder may be a checkpoint itself, a job's folder with its
// checkpoints, or a directory with the folders of several jobs. The checkpoints of one job are next to each other, the
// newest first. Error kNoInput: the folder doesn't exist.
Result<std::vector<checkpoint::Found>> checkpoints_in(checkpoint::Files& files, const std::string& folder);

// Both return one part of the checkpoint's path "<directory>/<job>/<checkpoint>".
std::string name_of_checkpoint(const checkpoint::Found& found);
std::string name_of_job(const checkpoint::Found& found);

std::uint64_t element_count(const checkpoint::VariableEntry& variable);

}  // namespace disttrain::cli
