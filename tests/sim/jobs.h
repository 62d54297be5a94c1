// What the processes of a simulated cluster know of jobs: a job's text is a name, its meaning a table's entry.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/config/cluster_config.h"
#include "common/config/job_config.h"
#include "common/model.h"
#include "tests/checkpoint/memory_files.h"

namespace disttrain::sim {

struct Jobs {
  std::map<std::string, JobConfig> configs;  // by name
  ModelSpec model;
  std::uint64_t records = 0;
  ClusterConfig cluster;
  std::unique_ptr<checkpoint::MemoryFiles> files = std::make_unique<checkpoint::MemoryFiles>();  // that all share
  Duration slowest_disk{};

  // The chief puts the effective number of steps behind the name.
  JobConfig read(const std::string& text) const {
    const std::size_t mark = text.find('#');
    JobConfig config = configs.at(text.substr(0, mark));
    if (mark != std::string::npos) config.train.steps = std::stoull(text.substr(mark + 1));
    return config;
  }
};

// An example's value, and what it adds to each element of a gradient: integers, so that sums are exact.
inline float value_of(std::uint64_t record) {
  return static_cast<float>(record % 7 + 1);
}
inline float coefficient(std::uint64_t flat_element) {
  return static_cast<float>(flat_element % 3 + 1);
}

}  // namespace disttrain::sim
