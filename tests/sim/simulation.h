// Simulates one seed. A cluster runs a first job while faults occur. Then the faults stop, the first job must end, and
// a second job must finish.
#pragma once

#include <cstdint>
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

// From now on, a failed check in the code (common/check.h) is a violation of the seed that runs, and doesn't end the
// process.
void take_failed_checks_for_violations();

Outcome simulate(std::uint64_t seed, bool keep_words);

}  // namespace disttrain::sim
