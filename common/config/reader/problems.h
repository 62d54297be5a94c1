// The problems of a configuration file, all at once, each with its place, a caret and what to do.
#pragma once

#include <string>
#include <vector>

#include "common/config/reader/toml_tree.h"
#include "common/result.h"

namespace disttrain::config {

struct Problem {
  TomlPosition at;
  std::string key;       // "train.batch_size", "ps[1].address"; "" = the file as a whole
  std::string found;     // value as written, "" = nothing there
  std::string expected;  // "an integer from 1 to 16777216"
  std::string nearest;   // nearest known key or word; "" = none is near
  std::string said;      // instead of found and expected: a whole sentence
  bool is_unknown = false;
};

// One or more lines:
//   job.toml:14:8: train.mode is "asink"; expected "async", "sync" or "ssp"; did you mean "async"?
//      14 | mode = "asink"
//         |        ^
std::string to_string(const Problem& problem);

// The most problems shown for one file; the others are counted.
inline constexpr std::size_t kMaxProblemsTold = 20;

// The first problems in the order of the file, with kConfig. `left_out`: problems that were found but not kept.
Error to_error(std::vector<Problem> problems, std::size_t left_out = 0);

}  // namespace disttrain::config
