// HeldParameters: which parameters are in a worker's buffers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "workerd/core/channels.h"

namespace disttrain::workerd {

class HeldParameters {
 public:
  // `has_two`: there are two buffers, and answers go to the one that isn't newest().
  HeldParameters(std::uint32_t shards, bool has_two) : has_two_(has_two), versions_(shards) {}

  // The buffer that receives answers now.
  std::uint32_t landing() const { return has_two_ ? 1 - newest_ : 0; }
  // The buffer with the newest complete parameters.
  std::uint32_t newest() const { return newest_; }
  // For each shard, the version of its parameters in that buffer.
  const std::vector<Step>& versions() const { return versions_; }
  // The version of the pacer's, which is the job's global step.
  Step version() const { return versions_[0]; }

  // All answers of these channels have arrived in landing(). Returns true if they are the first.
  bool take(const Channels& channels, bool are_averages) {
    if (has_two_) newest_ = 1 - newest_;
    std::transform(channels.begin(), channels.end(), versions_.begin(), [](const Channel& c) { return c.version(); });
    are_averages_ = are_averages;
    return !std::exchange(is_any_, true);
  }
  bool is_any() const { return is_any_; }
  // A step can be computed from them. The averages that an evaluation has used must not be used for a step.
  bool are_trainable() const { return is_any_ && !are_averages_; }

 private:
  const bool has_two_;
  bool is_any_ = false;
  bool are_averages_ = false;
  std::uint32_t newest_ = 0;
  std::vector<Step> versions_;
};

}  // namespace disttrain::workerd
