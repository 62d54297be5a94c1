// Starts a cluster, runs one job on it, and stops the cluster, for `up` and `bench`. If an earlier `up` was killed, the
// chief's journal may already have this job. Then the cluster continues that job and begins no new one.
#pragma once

#include <string>

#include "common/result.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/options.h"

namespace disttrain::cli {

struct FinishedRun {
  Json status;  // the job's last status; null if the chief never reported one
  int exit_code = 0;
  std::string logs;  // the run folder, if it is kept because the job failed
};

// Returns an error if the chief didn't accept the job or a task couldn't be started. If the job fails, returns
// its status. In all cases it stops every process that it has started.
Result<FinishedRun> run_on_own_cluster(const UpOptions& options);

// Prints the root cause of a failed job on stderr, and where its logs are. Call it last, because readers look for the
// cause in the last lines. Prints nothing if the job didn't fail.
void print_failure(const FinishedRun& run);

}  // namespace disttrain::cli
