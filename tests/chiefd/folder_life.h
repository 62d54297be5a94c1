// The life of one chief, as far as it concerns the checkpoint folder of a job. The chief opens the folder, sets aside
// damaged checkpoints, takes checkpoints with its ps tasks, gives some of them up, and removes old ones. All of this
// runs the real code of chiefd/folder_work and common/checkpoint. After each operation, the life records what the
// folder promises: the checkpoints that a crash must not lose.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/job_folder.h"
#include "common/ids.h"
#include "common/random.h"
#include "tests/common/checkpoint/memory_files.h"

namespace disttrain::chiefd {

inline constexpr const char* kFolder = "/c/job";

// Names a checkpoint by its generation and step. A newer checkpoint has a larger key. Generation 0: no checkpoint.
using CheckpointKey = std::pair<Generation, Step>;

std::string path_of(const CheckpointKey& checkpoint);

// The checkpoints that a restore from the folder must find.
struct Promise {
  // The promise begins when the life has done this many operations. It ends when the next promise begins.
  std::size_t operations = 0;
  std::set<CheckpointKey> kept;  // these are there and undamaged
  CheckpointKey newest;          // a restore finds this one, or `next`, undamaged
  CheckpointKey next;            // this one is being committed
};

// The state in which the previous life and the crash at its end left the folder.
struct Heritage {
  std::set<CheckpointKey> kept;
  CheckpointKey damaged;  // is still in the folder, but can't be restored
  Generation generation;  // the newest generation that has tried to take a checkpoint
};

struct Life {
  std::vector<Promise> promises;
  Generation generation;
  std::string problem;  // an operation that failed without an injected fault; "": none failed

  const Promise& at(std::size_t operations) const;
};

Life live(checkpoint::MemoryFiles& files, const Heritage& heritage, Random& random);

// A new chief restores the newest checkpoint of the folder. `committed`: the newest checkpoint that this chief knows
// of.
Result<CheckpointKey> restore(checkpoint::Files& files, const CheckpointKey& committed);
// A new chief restores the newest checkpoint and takes another one. Checks that after this the new checkpoint is the
// newest one, and that no leftovers remain.
Status go_on(checkpoint::Files& files, Generation generation);
// Checks that the checkpoint is complete and has the right values.
Status is_whole(checkpoint::Files& files, const std::string& path);

}  // namespace disttrain::chiefd
