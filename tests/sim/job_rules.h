// What a seed's jobs have besides plain SGD: rules with slots, clipping, steps that aren't finite, parameters to begin
// with. Drawn apart, so that a seed without any has the story that it would have without this file.
#pragma once

#include <cstdint>

#include "tests/sim/jobs.h"
#include "tests/sim/storage.h"
#include "tests/sim/world.h"

namespace disttrain::sim {

void draw_rules(std::uint64_t seed, World& world, Jobs& jobs, Storage& disk);

}  // namespace disttrain::sim
