// disttrain bench: trains a job to measure its steps per second and where the workers' time goes.
#include <cstdlib>
#include <iostream>

#include "common/daemon/startup.h"
#include "tools/disttrain/follow/summary.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

int bench(const UpOptions& options) {
  if (options.job.empty())
    return daemon::report(
        "disttrain bench",
        Error{ErrorCode::kUsage,
              "there is no job file and no verb; expected disttrain bench JOB.toml, or one of the verbs "
              "ps, update, step and scale"});
  const bool is_running = !options.cluster.empty();
  if (is_running && (options.ps || options.workers))
    return daemon::report("disttrain bench",
                          Error{ErrorCode::kUsage, "--ps and --workers can't be combined with a cluster file: " +
                                                       options.cluster + " already lists the tasks"});
  if (is_running && options.no_restart)
    return daemon::report(
        "disttrain bench",
        Error{ErrorCode::kUsage, "--no-restart can't be combined with a cluster file: the daemons of " +
                                     options.cluster + " run already, and bench doesn't restart them"});
  const auto finished = is_running
                            ? run_on_running_cluster(SubmitOptions{options.job, options.cluster, options.sets,
                                                                   options.json, options.output, false, options.warmup})
                            : run_on_own_cluster(options);
  if (!finished) return daemon::report("disttrain bench", finished.error());
  if (!finished->status.is_object()) return finished->exit_code;
  if (options.json) {
    std::cout << line_of(finished->status) << '\n';
  } else {
    print_summary(std::cout, finished->status);
    print_phases(std::cout, finished->status);
  }
  print_failure(*finished);
  return finished->exit_code;
}

}  // namespace disttrain::cli
