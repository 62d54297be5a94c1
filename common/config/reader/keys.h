// The rows for the keys of cluster.toml and job.toml (see schema.h), and the rules between keys.
#pragma once

#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/config/reader/schema.h"

namespace disttrain::config {

Keys cluster_keys(ClusterConfig& cluster);
void check_cluster_rules(const ClusterConfig& cluster, Reading& reading);

Keys job_keys(JobConfig& job);
// Sets the defaults that depend on the value of another key. Read the file before this call, because the call needs
// that value. Read the file again afterwards, because the call also overwrites values that the file sets.
void set_dependent_defaults(JobConfig& job);
void check_job_rules(const JobConfig& job, Reading& reading);

}  // namespace disttrain::config
