// The rows of both files, bound to the values that they fill, and the rules between keys.
#pragma once

#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/config/reader/schema.h"

namespace disttrain::config {

Keys cluster_keys(ClusterConfig& cluster);
void check_cluster_rules(const ClusterConfig& cluster, Reading& reading);

Keys job_keys(JobConfig& job);
// Sets defaults that depend on another key. Call it between two readings of the file.
void set_dependent_defaults(JobConfig& job);
void check_job_rules(const JobConfig& job, Reading& reading);

}  // namespace disttrain::config
