// What the processes of a simulated cluster know of jobs: a job's text is a name, its meaning a table's entry.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/layout.h"
#include "common/model.h"
#include "tests/sim/storage.h"

namespace disttrain::sim {

struct Jobs {
  std::map<std::string, JobConfig> configs;  // by name
  ModelSpec model;
  std::uint64_t records = 0;
  ClusterConfig cluster;
  Storage* disk = nullptr;                         // that all share
  std::map<std::string, std::uint64_t> nonfinite;  // by name: of a thousand computed steps so many aren't finite
  std::uint64_t bucket_elements = 0;               // what the placement makes is cut into such buckets; 0: it isn't

  // What is restored, or read before the job begins, takes so many pieces of so long: more than any timeout.
  std::uint64_t slow_pieces = 0;
  Duration slow_piece{};

  // The chief puts the effective number of steps behind the name.
  JobConfig read(const std::string& text) const { return configs.at(text); }
};

// What a file of parameters to begin with holds.
inline float init_value(std::uint32_t variable, std::uint64_t element) {
  return static_cast<float>((variable + 2 * element) % 5);
}
inline float first_value(const JobConfig& job, std::uint32_t variable, std::uint64_t element) {
  return job.checkpoint.init_from.empty() ? 0.0F : init_value(variable, element);
}

// Its parameters are exact sums: what they began with, less the gradient of each record.
inline bool is_exact(const JobConfig& job, const Jobs& jobs) {
  const OptimizerConfig& optimizer = job.train.optimizer;
  return job.train.mode != Mode::kSync && job.data.sharding == Sharding::kLease && optimizer.rule == Rule::kSgd &&
         optimizer.learning_rate == 1.0 && optimizer.weight_decay == 0.0 && job.train.clip.kind == ClipKind::kNone &&
         jobs.nonfinite.count(job.job.name) == 0;
}

// The same places of all elements, in small buckets.
inline Layout in_small_buckets(const Layout& layout, std::uint64_t elements) {
  if (elements == 0) return layout;
  Layout small = layout;
  small.buckets.clear();
  for (const Bucket& bucket : layout.buckets)
    for (std::uint64_t at = 0; at < bucket.elements; at += elements)
      small.buckets.push_back(Bucket{bucket.shard, bucket.flat_begin + at, bucket.shard_begin + at,
                                     std::min(elements, bucket.elements - at)});
  return small;
}

// An example's value, and what it adds to each element of a gradient: integers, so that sums are exact.
inline float value_of(std::uint64_t record) {
  return static_cast<float>(record % 7 + 1);
}
inline float coefficient(std::uint64_t flat_element) {
  return static_cast<float>(flat_element % 3 + 1);
}

}  // namespace disttrain::sim
