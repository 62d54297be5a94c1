// What the verbs share that speak to daemons which run already.
#pragma once

#include "common/config/cluster_config.h"
#include "common/result.h"
#include "tools/disttrain/chief_client.h"
#include "tools/disttrain/options.h"
#include "tools/disttrain/up/own_cluster.h"

namespace disttrain::cli {

struct RunningCluster {
  ChiefTarget target;
  Duration dial{};  // deadline of connecting
};

// `cluster_option` as in find_cluster(); `chief`: host:port instead, "" = none.
Result<RunningCluster> find_running_cluster(const std::string& cluster_option, const std::string& chief = "");

// Submits and watches to the end; status is null when it detached.
Result<FinishedRun> run_on_running_cluster(const SubmitOptions& options);

}  // namespace disttrain::cli
