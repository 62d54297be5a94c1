// Shared by `up` and `bench`: starts a cluster, runs one job on it, stops the cluster. If the chief's journal already
// holds this job, because an earlier `up` was killed, the job is followed to its end.
#pragma once

#include "common/result.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/options.h"

namespace disttrain::cli {

struct FinishedRun {
  Json status;  // the last one; null when the job never had one
  int exit_code = 0;
};

// An error: the chief didn't take the job, or its tasks couldn't be started; nothing that was started still runs. The
// root cause of a failed job is printed on stderr.
Result<FinishedRun> run_on_own_cluster(const UpOptions& options);

}  // namespace disttrain::cli
