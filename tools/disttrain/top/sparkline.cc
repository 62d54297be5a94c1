#include "tools/disttrain/top/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace disttrain::cli {

namespace {

constexpr std::size_t kHeights = 8;
constexpr std::array<const char*, kHeights> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, kHeights> kAscii{"_", ".", ":", "-", "=", "+", "*", "#"};

}  // namespace

std::string sparkline(const std::vector<double>& series, std::size_t columns, Lowest lowest, bool utf8) {
  const std::size_t shown = std::min(series.size(), columns);
  const auto begin = series.end() - static_cast<std::ptrdiff_t>(shown);
  double least = lowest == Lowest::kZero ? 0.0 : std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  for (auto value = begin; value != series.end(); ++value) {
    if (!std::isfinite(*value)) continue;
    least = std::min(least, *value);
    most = std::max(most, *value);
  }
  std::string line(columns - shown, ' ');
  for (auto value = begin; value != series.end(); ++value) {
    if (!std::isfinite(*value)) {
      line += ' ';
      continue;
    }
    const double share = most > least ? (*value - least) / (most - least) : 0.0;
    const auto height = static_cast<std::size_t>(std::lround(share * static_cast<double>(kHeights - 1)));
    line += utf8 ? kBlocks[height] : kAscii[height];
  }
  return line;
}

}  // namespace disttrain::cli
