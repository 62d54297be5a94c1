// Bounds on the code of a TorchScript archive. libtorch parses it, and makes a graph of it, by recursion: 20,000 nested
// parentheses overflow the stack and end the process. So this is checked before libtorch gets the file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace disttrain::program {

// Python has the same two bounds on what it reads.
inline constexpr std::size_t kMaxCodeBrackets = 200;  // ( [ { inside of each other
inline constexpr std::size_t kMaxCodeBlocks = 100;    // blocks inside of each other, each with a larger indentation
// Operators, words and brackets that make one expression, without those between other commas; and the branches of an
// if. libtorch writes long expressions as several statements.
inline constexpr std::size_t kMaxCodeOperators = 1000;

// Returns the first place that is beyond a bound, as "line 7 has more than 200 brackets inside of each other", or none.
// Works in one pass without recursion, on any bytes. Of a text that isn't code, it may find anything.
std::optional<std::string> find_deep_code(std::string_view code);

}  // namespace disttrain::program
