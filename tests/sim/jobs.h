// What simulated processes know of jobs. A job's text is only its name; the table `configs` says what it means.
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
  Storage* disk = nullptr;                         // shared by all tasks
  std::map<std::string, std::uint64_t> nonfinite;  // by name: how many of 1000 computed steps aren't finite
  std::uint64_t bucket_elements = 0;               // buckets of a layout are cut to this size; 0: they aren't cut

  // A restore, and the reading of data before a job begins, take so many pieces of so long each. Together they take
  // longer than any timeout; 0 pieces take no time.
  std::uint64_t slow_pieces = 0;
  Duration slow_piece{};

  // `text`: the job's name, in place of its TOML.
  JobConfig read(const std::string& text) const { return configs.at(text); }
};

// The values in the file of initial parameters.
inline float init_value(std::uint32_t variable, std::uint64_t element) {
  return static_cast<float>((variable + 2 * element) % 5);
}
inline float first_value(const JobConfig& job, std::uint32_t variable, std::uint64_t element) {
  return job.checkpoint.init_from.empty() ? 0.0F : init_value(variable, element);
}

// Whether the job's parameters are exact sums: their first values minus the gradient of each record.
inline bool is_exact(const JobConfig& job, const Jobs& jobs) {
  const OptimizerConfig& optimizer = job.train.optimizer;
  return job.train.mode != Mode::kSync && job.data.sharding == Sharding::kLease && optimizer.rule == Rule::kSgd &&
         optimizer.learning_rate == 1.0 && optimizer.weight_decay == 0.0 && job.train.clip.kind == ClipKind::kNone &&
         jobs.nonfinite.count(job.job.name) == 0;
}

// Cuts the buckets to at most `elements` elements; 0 leaves them as they are. No element changes its place.
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

// A record adds value_of(record) * coefficient(element) to each element of a gradient. Both are integers, so that sums
// are exact.
inline float value_of(std::uint64_t record) {
  return static_cast<float>(record % 7 + 1);
}
inline float coefficient(std::uint64_t flat_element) {
  return static_cast<float>(flat_element % 3 + 1);
}

}  // namespace disttrain::sim
