// Gives some jobs more than plain SGD on float32 variables: float64 variables, update rules with slots, clipping,
// losses and gradients that aren't finite, or a file of initial parameters. Draws from random streams of its own, so
// that it doesn't change the runs of seeds that have none of these.
#pragma once

#include <cstdint>

#include "tests/sim/jobs.h"
#include "tests/sim/storage.h"
#include "tests/sim/world.h"

namespace disttrain::sim {

// Call draw_doubles() first.
void draw_doubles(std::uint64_t seed, World& world, Jobs& jobs);
void draw_rules(std::uint64_t seed, World& world, Jobs& jobs, Storage& disk);

}  // namespace disttrain::sim
