// For how many workers the ps tasks have memory: the one number by which a job is admitted, its shards' memory is made,
// workers join, and `disttrain plan` counts. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/layout.h"

namespace disttrain::chiefd {

class MemoryFit {
 public:
  // `owners`: the ps of each shard. `memory`: what each may use; 0, or not named: not known, so that all fits.
  MemoryFit(const Layout& layout, const std::vector<TaskId>& owners, const JobConfig& job, std::uint32_t credits,
            const std::map<TaskId, std::uint64_t>& memory);

  // The most workers, up to `wanted`, for which every ps has the memory. 0: not even one.
  std::uint32_t most_workers(std::uint32_t wanted) const;
  // "with 7 workers the job needs 812 MiB at ps/0, which may use 700 MiB: add ps tasks, or ...". "": they fit.
  std::string why_not(std::uint32_t workers) const;

 private:
  struct Share {
    std::uint64_t fixed = 0;  // bytes, whoever trains
    std::uint64_t worker = 0;
    std::uint64_t offered = 0;
  };
  std::map<TaskId, Share> shares_;
};

// Memory is made for all workers of the cluster file, and for some that it doesn't list where these are taken: they may
// come while the job trains. `roster`: those that are there; more where they are more.
std::uint32_t wanted_places(std::uint32_t roster, std::uint32_t listed, bool takes_unlisted);

}  // namespace disttrain::chiefd
