// One seed: a cluster, a job, faults; then the faults stop, the job must end, and another one must finish.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/happenings.h"

namespace disttrain::sim {

struct Outcome {
  std::string violation;  // empty: all laws held
  std::uint64_t hash = 0;
  bool finished = false;  // the first job; else it failed, with this reason
  std::string reason;
  std::uint64_t turns = 0;
  Happenings happenings{};
  std::vector<std::string> words;  // the trace, if it was asked for
};

Outcome simulate(std::uint64_t seed, bool keep_words);

}  // namespace disttrain::sim
