// A bound on the pickles of a TorchScript archive, which hold its modules, tensors and constants. libtorch builds their
// values without recursion, but frees them by recursion: a million tuples inside of each other overflow the stack and
// end the process. So this is checked before libtorch gets the file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace disttrain::program {

inline constexpr std::size_t kMaxPickleNesting = 1000;  // modules, lists, tuples and dictionaries inside of each other

// Returns why libtorch must not read the pickle: values nest deeper than the bound or contain themselves, or it has
// opcodes that libtorch doesn't write. Or none. Works in one pass without recursion, on any bytes, in memory that is
// proportional to them.
std::optional<std::string> find_deep_pickle(std::string_view pickle);

}  // namespace disttrain::program
