// Simulates one seed. A cluster runs a first job while faults occur. Then the faults stop, the first job must end, and
// a second job must finish.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/sim/happenings.h"

namespace disttrain::sim {

struct Outcome {
  std::string violation;  // empty: all laws held
  std::uint64_t hash = 0;
  bool finished = false;  // true: the first job finished; `reason` says how it ended
  std::string reason;
  std::uint64_t turns = 0;
  Happenings happenings{};
  std::vector<std::string> words;  // the trace, if keep_words
};

// Thrown by the hook for failed checks (common/check.h) of a program that goes on after one. simulate() then returns a
// violation.
struct FailedCheck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Outcome simulate(std::uint64_t seed, bool keep_words);

}  // namespace disttrain::sim
