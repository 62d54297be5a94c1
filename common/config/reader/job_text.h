// Applies --set and makes paths absolute in a parsed job file, before the reader checks it.
#pragma once

#include <filesystem>
#include <string>

#include "common/config/reader/toml_tree.h"
#include "common/result.h"

namespace disttrain::config {

// Sets, adds or replaces a key; `set` is, for example, "train.optimizer.rule=adam". Fails with kUsage if `set` isn't
// section.key=value. Fails with kConfig if the key would be in a value that isn't a table: "train.mode.x=1" fails
// if the file sets train.mode to a string.
Status apply_set(TomlValue& document, const std::string& set);

// True if the document has the key of `set`, or if a part of the key before the last one isn't a table.
bool has_key_of(TomlValue& document, const std::string& set);

// Makes data.path, evaluate.path, checkpoint.directory and checkpoint.init_from absolute. A relative path starts at
// `folder`.
void make_paths_absolute(TomlValue& document, const std::filesystem::path& folder);

}  // namespace disttrain::config
