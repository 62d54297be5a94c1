// A series of numbers as one line of text, a column each: its height says how big. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttrain::cli {

// What the lowest height stands for.
enum class Lowest {
  kZero,   // what counts is how much of the most it is: rates
  kLeast,  // what counts is how it changes: losses
};

// The newest (last) `columns` of the series, to the right. What isn't finite is a blank. `utf8`: block elements, else
// ASCII.
std::string sparkline(const std::vector<double>& series, std::size_t columns, Lowest lowest, bool utf8);

}  // namespace disttrain::cli
