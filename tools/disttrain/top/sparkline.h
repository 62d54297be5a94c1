// Draws a series of numbers as one line of text. Each number is one column; the column's height shows how large it is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttrain::cli {

// The number that the lowest column stands for.
enum class Lowest {
  kZero,   // 0; good for rates, because a rate that is half as large gets half the height
  kLeast,  // the smallest number; good for losses, because small changes become visible
};

// Draws the last `columns` numbers of the series, aligned right. A number that isn't finite becomes a blank. Draws with
// Unicode's block elements if `utf8`, else with ASCII characters.
std::string sparkline(const std::vector<double>& series, std::size_t columns, Lowest lowest, bool utf8);

}  // namespace disttrain::cli
