// Messages through the real codec of the wire: what comes out takes the place of what went in.
#pragma once

#include <optional>
#include <string>

#include "tests/sim/network.h"

namespace disttrain::sim {

// What is wrong, if it can't be written or read.
std::optional<std::string> through_codec(Payload& payload);
std::optional<std::string> through_codec(Hello& hello);

}  // namespace disttrain::sim
