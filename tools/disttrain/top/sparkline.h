// A series of numbers as one line of text. Each number is one column, whose height shows its size. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttrain::cli {

// What the lowest height stands for.
enum class Lowest {
  kZero,   // 0: for rates, which are compared with the largest
  kLeast,  // the least value: for losses, whose changes matter
};

// The newest (last) `columns` values of the series, aligned right. A value that isn't finite is a blank. `utf8`: block
// elements, else ASCII.
std::string sparkline(const std::vector<double>& series, std::size_t columns, Lowest lowest, bool utf8);

}  // namespace disttrain::cli
