// Shared by the verbs that talk to a running cluster.
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

// `cluster_option` as in find_cluster(). `chief`: host:port to use instead; "" = none.
Result<RunningCluster> find_running_cluster(const std::string& cluster_option, const std::string& chief = "");

// Submits a job and watches it to its end. The status is null after a detach.
Result<FinishedRun> run_on_running_cluster(const SubmitOptions& options);

}  // namespace disttrain::cli
