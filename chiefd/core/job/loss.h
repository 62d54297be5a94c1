#pragma once

namespace disttrain::chiefd {

// Why a task was lost. Only kCounts counts for job.max_restarts.
enum class Loss {
  kCounts,  // the loss counts
  kLeft,    // the task was told to end
  kLink,    // the task lives, but can't reach another task
  kSpared,  // a worker failed or was lost while the generation started, and enough others are there
};

}  // namespace disttrain::chiefd
