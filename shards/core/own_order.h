// data.sharding = "none": how far each worker has got in its own order of the data set. The pacer counts it, because it
// alone learns which records a push is of. The numbers belong to the parameters: they count exactly the batches whose
// pushes the pacer has applied, so they are saved with each checkpoint and restored from it. They keep a worker that
// comes back from repeating or skipping batches. In ssp they differ from the workers' clocks, because a clock is raised
// when its worker becomes active (clocks.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "common/bounds.h"
#include "common/ids.h"
#include "common/messages/control.h"
#include "common/messages/data.h"

namespace disttrain::shards {

class OwnOrder {
 public:
  // `records`: in an epoch. `step_records`: in a batch; the last batch of an epoch may have fewer. `before`: the
  // batches that each worker had done at the checkpoint with which the generation begins.
  OwnOrder(std::uint64_t records, std::uint64_t step_records, std::map<TaskId, Step> before)
      : records_(records), step_records_(std::max<std::uint64_t>(step_records, 1)), batches_(std::move(before)) {
    while (batches_.size() > kMaxMembers) batches_.erase(std::prev(batches_.end()));  // a manifest may have any number
  }

  // A whole push of this worker is applied, or skipped because a value wasn't finite.
  void pushed(TaskId worker, const Push& push) {
    if (push.visited.empty() || records_ == 0) return;
    if (batches_.size() >= kMaxMembers && !batches_.contains(worker)) return;
    const std::uint64_t end = std::min(push.visited[push.visited.size() - 1].end, records_);
    Step& known = batches_[worker];
    known = std::max(known, Step(push.epoch * batches_in(records_) + batches_in(end)));
  }
  // 0 for a worker that has done none.
  Step batches_of(TaskId worker) const {
    const auto found = batches_.find(worker);
    return found == batches_.end() ? Step() : found->second;
  }
  // Of all workers that are known, at most kMaxMembers.
  std::vector<OwnBatches> all() const {
    std::vector<OwnBatches> all;
    for (const auto& [worker, batches] : batches_) all.push_back({worker, batches});
    return all;
  }

 private:
  std::uint64_t batches_in(std::uint64_t records) const { return (records + step_records_ - 1) / step_records_; }

  std::uint64_t records_;
  std::uint64_t step_records_;
  std::map<TaskId, Step> batches_;
};

}  // namespace disttrain::shards
