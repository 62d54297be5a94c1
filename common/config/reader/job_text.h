// Applies --set and makes paths absolute in a parsed job file, before the reader checks it.
#pragma once

#include <filesystem>
#include <string>

#include "common/config/reader/toml_tree.h"
#include "common/result.h"

namespace disttrain::config {

// Sets, adds or replaces a key; `set` is, for example, "train.optimizer.rule=adam". Fails with kUsage if `set` isn't
// section.key=value, and with kConfig if a part of the path before the last isn't a table.
Status apply_set(TomlValue& document, const std::string& set);

// Makes data.path, evaluate.path, checkpoint.directory and checkpoint.init_from absolute. A relative path starts at
// `folder`.
void make_paths_absolute(TomlValue& document, const std::filesystem::path& folder);

}  // namespace disttrain::config
