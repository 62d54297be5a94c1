// disttrain stop | kill [JOB]: `stop` ends a job when each worker has finished its current step, `kill` ends it at
// once.
#include <asio/io_context.hpp>
#include <iostream>

#include "common/daemon/startup.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

int stop(const StopOptions& options) {
  const char* const verb = options.kill ? "disttrain kill" : "disttrain stop";
  const auto cluster = find_running_cluster(options.cluster);
  if (!cluster) return daemon::report(verb, cluster.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  ChiefClient client(loop, [&interrupts] { return interrupts.count() > 0; });
  if (const Status connected = client.connect(cluster->target, cluster->dial); !connected)
    return daemon::report(verb, connected.error());
  const auto ended = end_job(client, options.job, options.kill);
  if (!ended) return daemon::report(verb, ended.error());
  std::cout << "job " << *ended << (options.kill ? " ends now" : " ends when each worker has finished its current step")
            << "; see: disttrain status\n";
  return 0;
}

}  // namespace disttrain::cli
