// FirstValues: which buckets have got the first values that a worker brings, and which worker was asked for them. All
// values come from one worker, so another giver begins anew. See shard_values.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "shards/core/events.h"

namespace disttrain::shards {

class FirstValues {
 public:
  // `are_awaited`: false if the shard has values from the start.
  FirstValues(std::size_t buckets, bool are_awaited)
      : lacks_(buckets, are_awaited), lacking_(are_awaited ? buckets : 0) {}

  bool are_missing() const { return lacking_ > 0; }

  // Notes that this worker is asked on this channel. Returns false if it was asked on it before. REQUIRES:
  // are_missing().
  bool ask(const Member& giver, ChannelId channel) {
    if (channel == asked_) return false;
    if (giver != giver_) {
      lacks_.assign(lacks_.size(), true);
      lacking_ = lacks_.size();
    }
    giver_ = giver;
    asked_ = channel;
    return true;
  }

  // Whether values of this worker are taken.
  bool are_wanted_of(const Member& worker) const { return are_missing() && worker == giver_; }
  // The bucket with this number has its values.
  void take(std::uint32_t bucket) {
    lacking_ -= lacks_[bucket] ? 1 : 0;
    lacks_[bucket] = false;
  }

 private:
  std::vector<bool> lacks_;  // by the bucket's number within the shard: true: it has no value yet
  std::size_t lacking_;      // the number of these buckets
  Member giver_;
  ChannelId asked_;  // 0 = none
};

}  // namespace disttrain::shards
