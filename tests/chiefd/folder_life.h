// One life of a chief, as a job's checkpoint folder sees it: the chief opens the folder, sets aside what is damaged,
// and with its ps tasks takes checkpoints, some of which are given up, and removes old ones. All by chiefd/folder_work
// and common/checkpoint; what is promised after each operation is noted.
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

// A checkpoint, ordered as newest goes; generation 0: none.
using CheckpointKey = std::pair<Generation, Step>;

std::string path_of(const CheckpointKey& checkpoint);

// What the folder must be restored to.
struct Promise {
  std::size_t operations = 0;    // holds once so many are done, up to the next one
  std::set<CheckpointKey> kept;  // are there, and whole
  CheckpointKey newest;          // is there, and whole, or `next` is
  CheckpointKey next;            // is being committed
};

// What the last life, and the crash at its end, have left.
struct Heritage {
  std::set<CheckpointKey> kept;
  CheckpointKey damaged;  // is there, and can't be used
  Generation generation;  // the newest that anything was tried in
};

struct Life {
  std::vector<Promise> promises;
  Generation generation;
  std::string problem;  // what couldn't be done, though nothing failed

  const Promise& at(std::size_t operations) const;
};

Life live(checkpoint::MemoryFiles& files, const Heritage& heritage, Random& random);

// A chief comes to the folder and restores its newest. `committed`: what it knows of.
Result<CheckpointKey> restore(checkpoint::Files& files, const CheckpointKey& committed);
// It goes on from there: its next checkpoint is the newest, and no leftovers are there.
Status go_on(checkpoint::Files& files, Generation generation);
// Whether all that the checkpoint had is there, and right.
Status is_whole(checkpoint::Files& files, const std::string& path);

}  // namespace disttrain::chiefd
