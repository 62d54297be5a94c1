// disttrain resubmit [JOB]: submits a job again that has failed or was stopped, with the file that the chief has kept.
// The job goes on from the newest checkpoint in its folder, if there is one.
#include <asio/io_context.hpp>
#include <iostream>

#include "common/daemon/startup.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

int resubmit(const ResubmitOptions& options) {
  const auto cluster = find_running_cluster(options.cluster, options.chief);
  if (!cluster) return daemon::report("disttrain resubmit", cluster.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  ChiefClient client(loop, [&interrupts] { return interrupts.count() > 0; });
  if (const Status connected = client.connect(cluster->target, cluster->dial); !connected)
    return daemon::report("disttrain resubmit", connected.error());
  const auto submitted = client.ask<JobSubmitted>(ResubmitRequest{options.job}, kAnswerDeadline);
  if (!submitted) return daemon::report("disttrain resubmit", submitted.error());
  std::cout << "job " << submitted->job.value << " goes on from its newest checkpoint, if it has one";
  if (submitted->ahead > 0) std::cout << "; jobs ahead of it: " << submitted->ahead;
  std::cout << "; see: disttrain status\n";
  return 0;
}

}  // namespace disttrain::cli
