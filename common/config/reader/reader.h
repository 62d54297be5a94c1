// The one door for configuration: cluster.toml and job.toml become plain values, or one error that names the problems
// of the file: file:line:column, key, what was found, what was expected, the nearest known key, and a caret. The text
// is anybody's: its bounds stand in toml_bounds.h, those of the message in problems.h; the time it takes grows with the
// size of the text, no faster.
//
// Errors: kConfig (78) for what the file says, kNoInput (66) or kNoPermission (77) when it can't be read, kUsage (64)
// for a --set that isn't section.key=value. Loading never changes a value that the file gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/result.h"

namespace disttrain::config {

Result<ClusterConfig> read_cluster(const std::string& path);

// The same from text; `name` stands for the file in messages. `sets` as in merge_job.
Result<ClusterConfig> parse_cluster(const std::string& text, const std::string& name,
                                    const std::vector<std::string>& sets = {});

// Text that travelled: whole, with absolute paths. evaluate.path is filled in from data.path where it is empty and
// there is an evaluation.
Result<JobConfig> read_job(const std::string& toml, const std::string& name = "job.toml");

struct JobFile {
  JobConfig config;
  std::string toml;  // the same as TOML text, which read_job() reads; this is what is submitted
};

// A job file with `--set section.key=value` applied in turn (each string without the --set): the value is parsed as
// TOML, else taken as a string; deeper keys reach into tables: train.optimizer.rule=adam. data.path and evaluate.path
// are made absolute: those of the file from its folder, those of a --set from the current folder.
Result<JobFile> read_job_file(const std::string& path, const std::vector<std::string>& sets);

// Settings that came from another process: each value is within the range that its key has, and they go together.
// kConfig otherwise, with the problems.
Status check_ranges(const JobConfig& job);

// What can only be told with both: aggregate, min_workers and shards against what the cluster has. kConfig.
Status check_job_fits(const JobConfig& job, const ClusterConfig& cluster);

// True where the section of `set` ("transport.credits=8") is one of cluster.toml.
bool is_cluster_key(const std::string& set);

// What a file is, told by its sections; kConfig when they are of neither or of both.
enum class FileKind { kCluster, kJob };
Result<FileKind> kind_of_file(const std::string& path);

// All keys with their values, as a document: equal for equal meaning. A job's says more than a job file may: the keys
// that its rule, kind or mode doesn't use are there too.
std::string cluster_toml(const ClusterConfig& cluster);
// ClusterConfig::hash of that document.
std::uint64_t hash_of(const ClusterConfig& cluster);
std::string job_toml(const JobConfig& job);

}  // namespace disttrain::config
