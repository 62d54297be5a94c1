// Reads cluster.toml and job.toml into structs. An error lists all problems of a file. Each problem has its file, line
// and column, the key, the value that was found, what was expected, the nearest known key, and a caret under the place.
// The text may come from anybody: toml_bounds.h bounds the text and problems.h bounds the error. The reading time grows
// at most linearly with the size of the text.
//
// Fails with kConfig (78) if the content of a file is wrong, with kNoInput (66) or kNoPermission (77) if the file can't
// be read, and with kUsage (64) if a --set isn't section.key=value. Reading never changes a value that the file gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/result.h"

namespace disttrain::config {

Result<ClusterConfig> read_cluster(const std::string& path);

// Reads a cluster from text. Messages use `name` as the name of the file. `sets` are as in read_job_file().
Result<ClusterConfig> parse_cluster(const std::string& text, const std::string& name,
                                    const std::vector<std::string>& sets = {});

// Reads a job from text that another process sent. All its paths must be absolute. If the job has an evaluation but no
// evaluate.path, evaluate.path becomes data.path. `sets` are as in read_job_file().
Result<JobConfig> read_job(const std::string& toml, const std::string& name = "job.toml",
                           const std::vector<std::string>& sets = {});

struct JobFile {
  JobConfig config;
  std::string toml;  // the config as TOML text for read_job(), with every --set applied; this text is submitted
};

// Reads a job file and then applies each of `sets` in order. A set is "section.key=value", without the "--set". The
// value is parsed as TOML if possible, else it is a string. A longer key reaches into a table:
// train.optimizer.rule=adam. Relative paths in the file start at the file's folder; relative paths in a set start at
// the current folder.
// `defaults` are like sets, but each applies only if neither the file nor a set gives its key.
Result<JobFile> read_job_file(const std::string& path, const std::vector<std::string>& sets,
                              const std::vector<std::string>& defaults = {});

// Checks a job's settings that came from another process: each value must be in the range of its key, and the rules
// between keys must hold. Fails with kConfig and lists the problems.
Status check_ranges(const JobConfig& job);

// Checks a job against the cluster: train.aggregate and job.min_workers can't exceed the number of workers. Fails with
// kConfig.
Status check_job_fits(const JobConfig& job, const ClusterConfig& cluster);

// Returns true if the section of `set` (such as "transport.credits=8") is a section of cluster.toml.
bool is_cluster_key(const std::string& set);

// Tells by its sections whether a file is a cluster file or a job file. Fails with kConfig if it can't tell.
enum class FileKind { kCluster, kJob };
Result<FileKind> kind_of_file(const std::string& path);

// Returns all keys with their values as a TOML document. Configurations with the same meaning give the same document.
// The document of a job also has keys that its rule, kind or mode doesn't use; a job file may not set those.
std::string cluster_toml(const ClusterConfig& cluster);
// The hash of cluster_toml(), for ClusterConfig::hash.
std::uint64_t hash_of(const ClusterConfig& cluster);
std::string job_toml(const JobConfig& job);

}  // namespace disttrain::config
