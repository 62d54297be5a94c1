// What the command line does to a job's tree before it is read: --set, and absolute paths.
#pragma once

#include <filesystem>
#include <string>

#include "common/config/reader/toml_tree.h"
#include "common/result.h"

namespace disttrain::config {

// "train.optimizer.rule=adam": sets, adds or replaces that key. kUsage when it isn't section.key=value, kConfig when it
// reaches into something that isn't a table.
Status apply_set(TomlValue& document, const std::string& set);

// data.path and evaluate.path, where they are relative, are taken from `folder`.
void make_paths_absolute(TomlValue& document, const std::filesystem::path& folder);

}  // namespace disttrain::config
