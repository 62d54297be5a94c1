// disttrain checkpoint save [JOB]: asks the chief for a checkpoint now, and waits until it is committed.
#include <asio/io_context.hpp>
#include <iostream>

#include "common/daemon/startup.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

constexpr char kVerb[] = "disttrain checkpoint save";
constexpr Duration kLongestSave = std::chrono::minutes(10);

}  // namespace

int checkpoint_save(const CheckpointSaveOptions& options) {
  const auto cluster = find_running_cluster(options.cluster, options.chief);
  if (!cluster) return daemon::report(kVerb, cluster.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  ChiefClient client(loop, [&interrupts] { return interrupts.count() > 0; });
  if (const Status connected = client.connect(cluster->target, cluster->dial); !connected)
    return interrupts.count() > 0 ? interrupts.exit_code() : daemon::report(kVerb, connected.error());
  const auto saved = client.ask<CheckpointSaved>(SaveRequest{options.job}, kLongestSave);
  if (!saved && interrupts.count() > 0) {
    std::cerr << "no longer waiting, but the chief goes on with the checkpoint; see: disttrain events\n";
    return interrupts.exit_code();
  }
  if (!saved) return daemon::report(kVerb, saved.error());
  if (options.json)
    std::cout << line_of(Json{{"path", saved->path}, {"step", saved->step.value}}) << '\n';
  else
    std::cout << saved->path << " (step " << with_commas(static_cast<double>(saved->step.value)) << ")\n";
  return 0;
}

}  // namespace disttrain::cli
