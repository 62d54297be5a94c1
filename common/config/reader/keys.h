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
// Refuses each of `keys` (their names follow `section`, such as "model.") that the file sets, if the key doesn't apply.
// `with` says what it needs.
void only_with(Reading& reading, bool applies, const std::string& section, const std::vector<std::string>& keys,
               const std::string& with);

Keys model_keys(ModelSection& model);
// `columns` are those of [data.columns]; the sizes of a model may follow from them.
void check_model(const ModelSection& model, const std::vector<ColumnSection>& columns, Reading& reading);

// The table [data.columns]. Its rows have names that the user chooses.
Field data_columns(std::vector<ColumnSection>& columns);
void check_columns(const JobConfig& job, Reading& reading);

}  // namespace disttrain::config
