// Finds NaNs and infinities in the arrays of a shard: its parameters, slots and averages.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "common/layout.h"
#include "common/result.h"

namespace disttrain::shards {

// `arrays`: the parameters of the shard and then its slots, each laid out as the parameters are (Layout). Fails with
// kData and a text such as 'the variable "w" has a NaN or an infinity in its slot 0'. Calls `is_cancelled` after each
// bucket; fails with kTemporary if it returned true. `is_cancelled` may be empty.
Status check_finite(const Layout& layout, ShardId shard, const std::vector<std::span<const float>>& arrays,
                    const std::function<bool()>& is_cancelled);

}  // namespace disttrain::shards
