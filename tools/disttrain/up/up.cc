// disttrain up: starts a cluster on this host, trains one job, and stops the cluster.
#include <iostream>

#include "common/config/reader/reader.h"
#include "common/daemon/startup.h"
#include "common/timeouts.h"
#include "tools/disttrain/follow/summary.h"
#include "tools/disttrain/up/own_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

int up(const UpOptions& options) {
  const auto finished = run_on_own_cluster(options);
  if (!finished) return daemon::report("disttrain up", finished.error());
  if (options.json)
    std::cout << line_of(finished->status) << '\n';
  else if (finished->status.is_object())
    print_summary(std::cout, finished->status);
  return finished->exit_code;
}

}  // namespace disttrain::cli
