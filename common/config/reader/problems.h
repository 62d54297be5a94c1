// The problems of a configuration file. All of them are reported at once, each with its place and what to do.
#pragma once

#include <string>
#include <vector>

#include "common/config/reader/toml_tree.h"
#include "common/result.h"

namespace disttrain::config {

struct Problem {
  TomlPosition at;
  std::string key;       // "train.batch_size", "ps[1].address"; "" = the problem concerns the whole file
  std::string found;     // the value as it is written; "" = the file doesn't have the key
  std::string expected;  // "an integer from 1 to 16777216"
  std::string nearest;   // the nearest known key or word; "" = none is near
  std::string said;      // the whole message, if it doesn't have the form "KEY is FOUND; expected EXPECTED"
  bool is_unknown = false;
};

// One or more lines:
//   job.toml:14:8: train.mode is "asink"; expected "async", "sync" or "ssp"; did you mean "async"?
//      14 | mode = "asink"
//         |        ^
std::string to_string(const Problem& problem);

// An error shows at most this many problems of a file, and the number of the others.
inline constexpr std::size_t kMaxProblemsTold = 20;

// Makes one error (kConfig) of the problems, in the order of the file. `left_out` is the number of further problems
// that were found but not stored.
Error to_error(std::vector<Problem> problems, std::size_t left_out = 0);

}  // namespace disttrain::config
