// Bounds on the pickles of a TorchScript archive, which hold its modules, tensors and constants. libtorch builds their
// values without recursion, but frees them and parses the names of types by recursion: a million tuples inside of each
// other overflow the stack and end the process. So this is checked before libtorch gets the file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace disttrain::program {

inline constexpr std::size_t kMaxPickleNesting = 1000;  // modules, lists, tuples and dictionaries inside of each other

inline constexpr std::size_t kMaxTypeNesting = 200;  // brackets in the name of a type, as in List[List[int]]

// Returns why libtorch must not read the pickle: values or types nest deeper than the bounds, values contain
// themselves, or it has opcodes that libtorch doesn't write. Or none. Works in one pass without recursion, on any
// bytes, in memory that is proportional to them.
std::optional<std::string> find_deep_pickle(std::string_view pickle);

}  // namespace disttrain::program
