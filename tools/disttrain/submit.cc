// disttrain submit: submits a job to a running cluster and watches it until its end.
#include <asio/io_context.hpp>
#include <iostream>

#include "common/daemon/startup.h"
#include "common/timeouts.h"
#include "tools/disttrain/follow/summary.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

int submit(const SubmitOptions& options) {
  const auto finished = run_on_running_cluster(options);
  if (!finished) return daemon::report("disttrain submit", finished.error());
  if (finished->status.is_null()) return finished->exit_code;  // after a detach nothing is left to print
  if (options.json)
    std::cout << line_of(finished->status) << '\n';
  else
    print_summary(std::cout, finished->status);
  print_failure(*finished);
  return finished->exit_code;
}

}  // namespace disttrain::cli
