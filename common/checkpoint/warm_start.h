// Warm start: a job takes its initial parameters from a checkpoint or from a model file of another program.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "common/checkpoint/files.h"
#include "common/ids.h"
#include "common/layout.h"

namespace disttrain::checkpoint {

// Fills one shard of `target` from the weights at `path` (see Weights::open), and reads only the elements of this
// shard. `init_map` maps variable names in the file to names in the model; a variable that isn't in the map has the
// same name in both. Every variable of the model must be in the file. State variables are read too. Values of other
// dtypes are rounded to float32 (numbers.h), unless F64 values are for a float64 variable. So the state_dict of a
// module in PyTorch serves, with its counters of int64. Optimizer slots and all other variables of the file are
// ignored: frozen ones keep the values of their program. `parameters` has shard_words(target, shard) words.
//
// Fails with kConfig if a variable is missing or has another shape, if the map has an unknown name, or if a dtype can't
// be converted. One message lists all these problems, and it is the same for every shard. Fails with kData if a value
// of this shard is NaN or infinite, also if only the rounding makes it infinite. Fails with kTemporary if it was
// cancelled. After an error the content of `parameters` is undefined.
Status read_parameters(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map,
                       const Layout& target, ShardId shard, std::span<float> parameters,
                       const IsCancelled& is_cancelled = {});

// Finds the errors that read_parameters() would find about names, shapes and dtypes, without reading any values.
Status check_parameters(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map,
                        const ModelSpec& model);

// A sentence about the variables of the file whose values read_parameters() ignores, such as frozen ones. "" if there
// are none. Fails as check_parameters() does.
Result<std::string> ignored_parameters(Files& files, const std::string& path,
                                       const std::map<std::string, std::string>& init_map, const ModelSpec& model);

}  // namespace disttrain::checkpoint
