// Gives some jobs more than plain SGD: rules with slots, clipping, losses and gradients that aren't finite, a file of
// initial parameters. It uses a random stream of its own, so that a seed without any of these keeps its trace.
#pragma once

#include <cstdint>

#include "tests/sim/jobs.h"
#include "tests/sim/storage.h"
#include "tests/sim/world.h"

namespace disttrain::sim {

void draw_rules(std::uint64_t seed, World& world, Jobs& jobs, Storage& disk);

}  // namespace disttrain::sim
