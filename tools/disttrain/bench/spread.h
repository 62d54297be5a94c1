// The results of several rounds of one measurement.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/disttrain/json.h"

namespace disttrain::cli {

struct Spread {
  double min = 0.0;
  double median = 0.0;
  double max = 0.0;
};

// `results` must not be empty. The median of an even number of results is the mean of the two in the middle.
inline Spread spread_of(std::vector<double> results) {
  std::sort(results.begin(), results.end());
  const std::size_t half = results.size() / 2;
  const double median = results.size() % 2 == 1 ? results[half] : (results[half - 1] + results[half]) / 2;
  return {results.front(), median, results.back()};
}

inline Json json_of(const Spread& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

// Formats a number with three significant digits or more, such as "0.412", "41.2" and "41,235".
inline std::string figure_text(double number) {
  char text[64];
  const int decimals = number < 1 ? 3 : number < 10 ? 2 : number < 100 ? 1 : 0;
  std::snprintf(text, sizeof(text), "%.*f", decimals, number);
  std::string figure = text;
  if (decimals == 0)
    for (std::size_t at = figure.size(); at > 3; at -= 3) figure.insert(at - 3, ",");
  return figure;
}

// "41.2 (40.1 - 55.0)".
inline std::string spread_text(const Spread& spread) {
  return figure_text(spread.median) + " (" + figure_text(spread.min) + " - " + figure_text(spread.max) + ")";
}

}  // namespace disttrain::cli
