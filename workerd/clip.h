// Clips the gradient of one worker by its global norm (train.clip.kind = "global_norm" in async and ssp).
#pragma once

#include <span>

#include "common/layout.h"

namespace disttrain::workerd {

// Scales the gradients of the whole model down if their norm is larger than `limit`. Does nothing if the norm isn't
// finite, because the shards check for that. The values of state variables aren't gradients: they don't count and
// aren't scaled.
void clip_to_norm(const Layout& layout, std::span<float> gradients, double limit);

}  // namespace disttrain::workerd
