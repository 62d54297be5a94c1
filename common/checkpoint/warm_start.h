// A warm start: a job's first parameters from those of a checkpoint or of somebody else's model.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "common/checkpoint/files.h"
#include "common/ids.h"
#include "common/layout.h"

namespace disttrain::checkpoint {

// Fills one shard of `target` from what `path` holds (Weights::open), reading only what the shard owns. `init_map` maps
// their names to ours; what isn't named there has the same name. Every variable of the model is taken, state too; what
// else `path` holds isn't, nor optimizer slots. `parameters`: shard_elements(target, shard).
//
// kConfig: a variable that isn't there, a shape that differs, a name in the map that nobody has, a dtype that isn't a
// float of 16 or 32 bits: all of them in one message, which is the same for every shard. On an error the content of
// `parameters` is undefined. kTemporary: it was cancelled.
Status read_parameters(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map,
                       const Layout& target, ShardId shard, std::span<float> parameters,
                       const IsCancelled& is_cancelled = {});

// What read_parameters() would say of names, shapes and dtypes; reads no values.
Status check_parameters(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map,
                        const ModelSpec& model);

}  // namespace disttrain::checkpoint
