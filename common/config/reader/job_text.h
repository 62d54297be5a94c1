// What the command line changes in a parsed job file before the reader checks it: it applies --set and makes paths
// absolute.
#pragma once

#include <filesystem>
#include <string>

#include "common/config/reader/toml_tree.h"
#include "common/result.h"

namespace disttrain::config {

// "train.optimizer.rule=adam": sets, adds or replaces this key. kUsage if it isn't section.key=value, kConfig if its
// path goes through a value that isn't a table.
Status apply_set(TomlValue& document, const std::string& set);

// Makes relative data.path, evaluate.path and the checkpoint paths absolute, from `folder`.
void make_paths_absolute(TomlValue& document, const std::filesystem::path& folder);

}  // namespace disttrain::config
