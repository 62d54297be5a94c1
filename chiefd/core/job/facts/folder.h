// Stores what the chief knows of a job's checkpoint folder. The shell does the slow work (FolderWork). Of its answers
// the chief waits for one at a time: that which carries StageWait::ticket().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chiefd/core/journal_state.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct FolderFacts {
  bool is_open = false;
  std::optional<Instant> ask_again;  // set after a failure
  Instant asked;
  std::string error;  // why the folder can't be opened or read; empty if it can
  // The newest generation that has a checkpoint in the folder, even if that checkpoint can't be read.
  Generation newest_generation;
  // The number that the chief wrote into the folder. A ps that reads the same number has the same folder mounted.
  std::uint64_t mark = 0;
  // The newest checkpoint that the chief knows of. It may be from a time before the chief was restarted.
  std::optional<CheckpointRecord> newest;
  std::string damage;  // a ps's report about the checkpoint that was set aside last
};

}  // namespace disttrain::chiefd
