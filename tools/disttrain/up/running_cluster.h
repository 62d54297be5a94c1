// Finds a running cluster for the verbs that talk to one, and runs a job on it.
#pragma once

#include "common/config/cluster_config.h"
#include "common/result.h"
#include "tools/disttrain/chief_client.h"
#include "tools/disttrain/options.h"
#include "tools/disttrain/up/own_cluster.h"

namespace disttrain::cli {

struct RunningCluster {
  ChiefTarget target;
  Duration dial{};  // deadline for connecting
};

// Finds the cluster with find_cluster(cluster_option). If `chief` (host:port) isn't "", uses that address instead.
Result<RunningCluster> find_running_cluster(const std::string& cluster_option, const std::string& chief = "");

// Submits a job and watches it to its end. If the user detaches before, the returned status is null.
Result<FinishedRun> run_on_running_cluster(const SubmitOptions& options);

}  // namespace disttrain::cli
