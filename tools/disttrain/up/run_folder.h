// The folder of a cluster that the command line starts on this host: its cluster file and its logs.
#pragma once

#include <filesystem>

#include "common/result.h"

namespace disttrain::cli {

// Makes a new folder in $TMPDIR or /tmp, for this user only. The caller removes it.
Result<std::filesystem::path> make_run_folder();

}  // namespace disttrain::cli
