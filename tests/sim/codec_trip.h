// Encodes a message with the real wire codec, decodes it, and replaces it with the result.
#pragma once

#include <optional>
#include <string>

#include "tests/sim/network.h"

namespace disttrain::sim {

// Returns the error if the message can't be encoded or decoded.
std::optional<std::string> through_codec(Payload& payload);
std::optional<std::string> through_codec(Hello& hello);

}  // namespace disttrain::sim
