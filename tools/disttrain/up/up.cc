// disttrain up: starts a cluster on this host, trains one job, and stops the cluster.
#include <iostream>

#include "common/config/reader/reader.h"
#include "common/daemon/startup.h"
#include "common/timeouts.h"
#include "tools/disttrain/follow/summary.h"
#include "tools/disttrain/up/own_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

// Users who forget --job have often written the job file in the place of the cluster file.
Error missing_job(const std::string& cluster) {
  const auto kind = cluster.empty() ? tl::unexpected<Error>(Error()) : config::kind_of_file(cluster);
  const bool is_job = kind && *kind == config::FileKind::kJob;
  return Error{ErrorCode::kUsage, is_job ? cluster + " is a job file; write: disttrain up --job " + cluster
                                         : "--job is required: name the job file"};
}

}  // namespace

int up(const UpOptions& options) {
  if (options.job.empty()) return daemon::report("disttrain up", missing_job(options.cluster));
  const auto finished = run_on_own_cluster(options);
  if (!finished) return daemon::report("disttrain up", finished.error());
  if (options.json)
    std::cout << line_of(finished->status) << '\n';
  else if (finished->status.is_object())
    print_summary(std::cout, finished->status);
  print_failure(*finished);
  return finished->exit_code;
}

}  // namespace disttrain::cli
