#include "tools/disttrain/up/running_cluster.h"

#include <iostream>

#include "common/config/reader/reader.h"
#include "common/timeouts.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/follow/summary.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/up/runtime_folder.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

void say_detached(const std::string& number, const std::string& name) {
  std::cerr << "detached: job " << number << " (" << name << ") goes on. See: disttrain status " << number
            << "; to end it: disttrain stop " << number << '\n';
}

}  // namespace

Result<RunningCluster> find_running_cluster(const std::string& cluster_option, const std::string& chief) {
  if (!chief.empty()) return RunningCluster{ChiefTarget{chief, "", 0}, derive_timeouts(HeartbeatConfig().timeout).dial};
  auto file = find_cluster(cluster_option);
  if (!file) return tl::unexpected<Error>(std::move(file.error()));
  auto cluster = config::read_cluster(*file);
  if (!cluster) return tl::unexpected<Error>(std::move(cluster.error()));
  return RunningCluster{ChiefTarget{cluster->chief.address, cluster->name, cluster->hash},
                        derive_timeouts(cluster->heartbeat.timeout).dial};
}

Result<FinishedRun> run_on_running_cluster(const SubmitOptions& options) {
  for (const std::string& set : options.sets)
    if (config::is_cluster_key(set))
      return fail(ErrorCode::kUsage,
                  "--set " + set + ": this is a key of the cluster file, which the running daemons have already read");
  const auto job = config::read_job_file(options.job, options.sets);
  if (!job) return tl::unexpected<Error>(job.error());
  auto cluster = find_running_cluster(options.cluster);
  if (!cluster) return tl::unexpected<Error>(std::move(cluster.error()));

  asio::io_context loop;
  Interrupts interrupts(loop);
  ChiefClient client(loop, [&interrupts] { return interrupts.count() > 0; });
  if (Status connected = client.connect(cluster->target, cluster->dial); !connected) {
    if (interrupts.count() == 0) return tl::unexpected<Error>(std::move(connected.error()));
    std::cerr << connected.error().message << ": nothing was submitted\n";
    return FinishedRun{Json(), interrupts.exit_code(), ""};
  }
  auto number = submit_job(client, *job, options.warmup);
  if (!number) {
    if (interrupts.count() == 0) return tl::unexpected<Error>(std::move(number.error()));
    std::cerr << number.error().message << "; the chief may have accepted job " << job->config.job.name
              << ". See: disttrain status --all\n";
    return FinishedRun{Json(), interrupts.exit_code(), ""};
  }
  if (options.detach) {
    std::cout << *number << '\n';
    return FinishedRun{Json(), 0, ""};
  }
  Outcome outcome = follow(client, interrupts,
                           FollowedJob{cluster->target,
                                       *number,
                                       OnInterrupt::kDetach,
                                       {},
                                       kChiefPatience,
                                       {},
                                       output_of(options.output, job->config)});
  if (outcome.interrupted != 0) {
    say_detached(*number, job->config.job.name);
    return FinishedRun{Json(), outcome.interrupted, ""};
  }
  if (outcome.error)
    return fail(outcome.error->code, outcome.error->message + "\njob " + *number + " (" + job->config.job.name +
                                         ") may still run; see: disttrain status " + *number);
  const int exit_code = exit_code_of(outcome.status);
  return FinishedRun{std::move(outcome.status), exit_code, ""};
}

}  // namespace disttrain::cli
