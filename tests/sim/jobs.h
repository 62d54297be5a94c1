// The jobs of a simulation. A simulated job has only its name in place of a TOML text, and `configs` has the settings
// for each name.
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
  std::map<std::string, std::uint64_t> nonfinite;  // by job: in how many of 1000 steps a worker spoils its result
  // The largest number of elements in a bucket: layouts with larger buckets are cut. 0: no limit.
  std::uint64_t bucket_elements = 0;

  // A restore takes this many pieces, and each piece takes this long. Reading the data before a job begins takes as
  // many pieces. The pieces together take longer than most timeouts. 0 pieces: neither takes any time.
  std::uint64_t slow_pieces = 0;
  Duration slow_piece{};

  // `text` is the job's name.
  JobConfig read(const std::string& text) const { return configs.at(text); }
};

// The initial parameters that job_rules.cc writes to a file.
inline float init_value(std::uint32_t variable, std::uint64_t element) {
  return static_cast<float>((variable + 2 * element) % 5);
}
// The initial parameters that a worker brings.
inline float brought_value(std::uint32_t variable, std::uint64_t element) {
  return static_cast<float>((2 * variable + element) % 7);
}
inline float first_value(const JobConfig& job, const ModelSpec& model, std::uint32_t variable, std::uint64_t element) {
  if (!job.checkpoint.init_from.empty()) return init_value(variable, element);
  return model.brings_values ? brought_value(variable, element) : 0.0F;
}

// Returns true if the final parameters can be computed exactly: as the initial values minus the gradient of each
// record.
inline bool is_exact(const JobConfig& job, const Jobs& jobs) {
  const OptimizerConfig& optimizer = job.train.optimizer;
  return job.train.mode != Mode::kSync && job.data.sharding == Sharding::kLease && optimizer.rule == Rule::kSgd &&
         optimizer.learning_rate == 1.0 && optimizer.weight_decay == 0.0 && job.train.clip.kind == ClipKind::kNone &&
         jobs.nonfinite.count(job.job.name) == 0;
}

// Cuts buckets so that none has more than `elements` elements; 0: cuts none. The elements stay where they are.
inline Layout in_small_buckets(const Layout& layout, std::uint64_t elements) {
  if (elements == 0) return layout;
  Layout small = layout;
  small.buckets.clear();
  for (const Bucket& bucket : layout.buckets)
    for (std::uint64_t at = 0; at < bucket.words; at += elements)
      small.buckets.push_back(
          Bucket{bucket.shard, bucket.flat_begin + at, bucket.shard_begin + at, std::min(elements, bucket.words - at)});
  return small;
}

// The simulated gradient: each record adds value_of(record) * coefficient(element) to each element. Both factors are
// integers, so that floats represent all sums exactly.
inline float value_of(std::uint64_t record) {
  return static_cast<float>(record % 7 + 1);
}
inline float coefficient(std::uint64_t flat_element) {
  return static_cast<float>(flat_element % 3 + 1);
}

}  // namespace disttrain::sim
