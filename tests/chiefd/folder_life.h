// One life of a chief, as a job's checkpoint folder sees it. The chief opens the folder, sets aside damaged
// checkpoints, takes checkpoints with its ps tasks, gives some of them up, and removes old ones. All by
// chiefd/folder_work and common/checkpoint. After each operation, what the folder promises is noted.
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

// A checkpoint. A larger key is newer; generation 0: none.
using CheckpointKey = std::pair<Generation, Step>;

std::string path_of(const CheckpointKey& checkpoint);

// What a restore from the folder must find.
struct Promise {
  std::size_t operations = 0;    // the promise holds after so many operations, up to the next promise
  std::set<CheckpointKey> kept;  // these are there and undamaged
  CheckpointKey newest;          // this one, or `next`, is there and undamaged
  CheckpointKey next;            // this one is being committed
};

// What the last life, and the crash at its end, left behind.
struct Heritage {
  std::set<CheckpointKey> kept;
  CheckpointKey damaged;  // is there, but can't be used
  Generation generation;  // the newest in which a checkpoint was attempted
};

struct Life {
  std::vector<Promise> promises;
  Generation generation;
  std::string problem;  // what failed, though no fault was injected; "": nothing

  const Promise& at(std::size_t operations) const;
};

Life live(checkpoint::MemoryFiles& files, const Heritage& heritage, Random& random);

// A new chief restores the newest checkpoint of the folder. `committed`: the newest that it knows of.
Result<CheckpointKey> restore(checkpoint::Files& files, const CheckpointKey& committed);
// A new chief restores and takes another checkpoint. Checks that this one is the newest and that no leftovers remain.
Status go_on(checkpoint::Files& files, Generation generation);
// Checks that the checkpoint is complete and has the right values.
Status is_whole(checkpoint::Files& files, const std::string& path);

}  // namespace disttrain::chiefd
