// Computes for how many workers the ps tasks have memory. The chief uses this number when it admits a job, when it
// creates shards, and when a worker wants to join. `disttrain plan` uses it too.
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
  // `owners` has the ps of each shard. `memory` has the number of bytes that each ps may use. If this number is 0 or
  // missing, it isn't known, and the ps counts as large enough.
  MemoryFit(const Layout& layout, const std::vector<TaskId>& owners, const JobConfig& job, std::uint32_t credits,
            const std::map<TaskId, std::uint64_t>& memory);

  // The largest number of workers, up to `wanted`, for which every ps has enough memory. 0: not enough for one worker.
  std::uint32_t most_workers(std::uint32_t wanted) const;
  // Why a ps doesn't have enough memory for this many workers, such as "with 7 workers the job needs 812 MiB at ps/0,
  // which may use 700 MiB: add ps tasks, or ...". "": every ps has enough.
  std::string why_not(std::uint32_t workers) const;

 private:
  struct Share {
    std::uint64_t fixed = 0;  // bytes, however many workers train
    std::uint64_t worker = 0;
    std::uint64_t offered = 0;
  };
  std::map<TaskId, Share> shares_;
};

// For how many workers the shards should have memory. This is the number of workers that the cluster file lists
// (`listed`) or that the job has now (`roster`), whichever is larger. If unlisted workers may join, some more are
// added.
std::uint32_t wanted_places(std::uint32_t roster, std::uint32_t listed, bool takes_unlisted);

}  // namespace disttrain::chiefd
