// The number of workers that the ps tasks have memory for. Admission of a job, allocation of its shards, joins and
// `disttrain plan` all use this one number. Pure.
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
  // `owners`: the ps of each shard. `memory`: the bytes that each ps may use; 0 or missing: not known, so that
  // everything fits.
  MemoryFit(const Layout& layout, const std::vector<TaskId>& owners, const JobConfig& job, std::uint32_t credits,
            const std::map<TaskId, std::uint64_t>& memory);

  // The most workers, up to `wanted`, for which every ps has the memory. 0: not even one.
  std::uint32_t most_workers(std::uint32_t wanted) const;
  // "with 7 workers the job needs 812 MiB at ps/0, which may use 700 MiB: add ps tasks, or ...". "": they fit.
  std::string why_not(std::uint32_t workers) const;

 private:
  struct Share {
    std::uint64_t fixed = 0;  // bytes, however many workers train
    std::uint64_t worker = 0;
    std::uint64_t offered = 0;
  };
  std::map<TaskId, Share> shares_;
};

// The number of workers to make memory for: all that the cluster file lists, and some more if unlisted workers may join
// while the job trains. At least `roster`, the number of current workers.
std::uint32_t wanted_places(std::uint32_t roster, std::uint32_t listed, bool takes_unlisted);

}  // namespace disttrain::chiefd
