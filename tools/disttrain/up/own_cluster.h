// What `up` and `bench` share: start a cluster of their own, run one job on it, take all down. Where the journal of the
// chief holds that very job, it is followed to its end: an `up` before this one was killed.
#pragma once

#include "common/result.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/options.h"

namespace disttrain::cli {

struct FinishedRun {
  Json status;  // the last one; null when the job never had one
  int exit_code = 0;
};

// An error: the chief didn't take the job, or its tasks couldn't be started; nothing that this call started
// runs. The root cause of a failed job has been said on stderr.
Result<FinishedRun> run_on_own_cluster(const UpOptions& options);

}  // namespace disttrain::cli
