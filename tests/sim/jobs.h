// The jobs of a simulation. A simulated job has only its name in place of a TOML text, and `configs` has the settings
// for each name.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <type_traits>

#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/doubles.h"
#include "common/layout.h"
#include "common/model.h"
#include "tests/sim/storage.h"

namespace disttrain::sim {

// What a worker can't do, because it lacks memory, a device, a library or the data.
enum class Lack {
  kNothing,
  kDescription,  // it answers DescribeJob with a failure
  kOpening,      // it answers OpenJob with a failure
  kLife,         // its process dies when it opens a job
};

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

  // One worker that lacks something until the faults end, whatever process it is.
  TaskId lacking;
  Lack lack = Lack::kNothing;
  std::function<void(TaskId)> die;  // ends the worker's process soon
  bool lacks(TaskId worker, Lack what) const { return lack == what && lacking == worker; }

  // `text` is the job's name.
  JobConfig read(const std::string& text) const { return configs.at(text); }
};

// A float is the integer itself. A double is a little larger, so that no float can hold it; but doubles represent all
// sums of such numbers exactly.
template <typename T>
T fine(std::uint64_t integer) {
  if constexpr (std::is_same_v<T, double>) return static_cast<double>(integer) + 0x1p-30;
  return static_cast<T>(integer);
}

// The initial parameters that job_rules.cc writes to a file.
template <typename T>
T init_value(std::uint32_t variable, std::uint64_t element) {
  return fine<T>((variable + 2 * element) % 5);
}
// The initial parameters that a worker brings.
template <typename T>
T brought_value(std::uint32_t variable, std::uint64_t element) {
  return fine<T>((2 * variable + element) % 7);
}
template <typename T>
T first_value(const JobConfig& job, const ModelSpec& model, std::uint32_t variable, std::uint64_t element) {
  if (!job.checkpoint.init_from.empty()) return init_value<T>(variable, element);
  return model.brings_values ? brought_value<T>(variable, element) : T{0};
}
// The word at this index of a variable, when all its elements have their first values.
inline float first_word(const JobConfig& job, const ModelSpec& model, std::uint32_t variable, std::uint64_t word) {
  return with_type(model.variables[variable].dtype, [&]<typename T>(T) {
    using Words = std::array<float, sizeof(T) / sizeof(float)>;
    const T value = first_value<T>(job, model, variable, word / Words().size());
    return std::bit_cast<Words>(value)[word % Words().size()];
  });
}

// Words are compared by their bits, because a half of a double may be a NaN as a float.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
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
  for (std::uint32_t id = 0; id < layout.buckets.size(); ++id) {
    const Bucket& bucket = layout.buckets[id];
    const std::uint64_t words = elements * size_of(dtype_of(layout, BucketId(id))) / sizeof(float);
    for (std::uint64_t at = 0; at < bucket.words; at += words)
      small.buckets.push_back(
          Bucket{bucket.shard, bucket.flat_begin + at, bucket.shard_begin + at, std::min(words, bucket.words - at)});
  }
  return small;
}

// The simulated gradient: each record adds value_of(record) * coefficient(word) to each element, where `word` is the
// index of the element's first word in the flat array. The values are integers, so floats and doubles represent all
// sums exactly; see fine().
inline float value_of(std::uint64_t record) {
  return static_cast<float>(record % 7 + 1);
}
template <typename T>
T coefficient(std::uint64_t word) {
  return fine<T>(word % 3 + 1);
}

}  // namespace disttrain::sim
