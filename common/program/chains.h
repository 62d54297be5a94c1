// Chains of things that contain or need each other: values of a pickle, definitions of code. libtorch follows them by
// recursion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace disttrain::program {

struct Chains {
  std::uint64_t heaviest = 0;  // the largest sum of weights along a chain, without the things that `endless` counts
  std::uint64_t endless = 0;   // the sum of the weights of all things from which a chain leads to a circle
};

// `weights`: of the things, by their numbers. `inside`: pairs of a thing and one that it contains. Works without
// recursion, in a time proportional to the number of things and pairs.
Chains chains_of(const std::vector<std::uint32_t>& weights,
                 const std::vector<std::pair<std::uint32_t, std::uint32_t>>& inside);

}  // namespace disttrain::program
