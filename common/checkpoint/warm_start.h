// A warm start: a job's first parameters from a checkpoint or a foreign model.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "common/checkpoint/files.h"
#include "common/ids.h"
#include "common/layout.h"

namespace disttrain::checkpoint {

// Fills one shard of `target` from `path` (Weights::open), reading only what the shard owns. `init_map` maps their
// names to ours; other names are the same. Takes every variable of the model, also state, but no optimizer slots;
// ignores everything else in `path`. `parameters`: shard_elements(target, shard).
//
// kConfig: a missing variable, a different shape, an unknown name in the map, a dtype that isn't a float of 16 or 32
// bits; all of them in one message, the same for every shard. After an error the content of `parameters` is undefined.
// kTemporary: it was cancelled.
Status read_parameters(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map,
                       const Layout& target, ShardId shard, std::span<float> parameters,
                       const IsCancelled& is_cancelled = {});

// The errors of read_parameters() about names, shapes and dtypes, without reading values.
Status check_parameters(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map,
                        const ModelSpec& model);

}  // namespace disttrain::checkpoint
