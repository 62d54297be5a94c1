// FirstValues: a new job's shards ask one worker for the model's initial values. The worker's engine writes them to a
// gradient buffer once, and each shard that asks gets its part.
#pragma once

#include <utility>
#include <vector>

#include "common/ids.h"

namespace disttrain::workerd {

class FirstValues {
 public:
  // A shard asks. Returns true if the engine must load the values now.
  bool want(ShardId shard) {
    wanted_.push_back(shard);
    if (state_ != State::kNone) return false;
    state_ = State::kLoading;
    return true;
  }
  // The engine has loaded them. Ignored if it wasn't asked to.
  void note_loaded() {
    if (state_ == State::kLoading) state_ = State::kLoaded;
  }
  // The engine is writing them to the gradient buffer.
  bool is_loading() const { return state_ == State::kLoading; }
  // The shards that asked and that can be sent their values now. The caller sends them.
  std::vector<ShardId> take() { return state_ == State::kLoaded ? std::exchange(wanted_, {}) : std::vector<ShardId>(); }

 private:
  enum class State { kNone, kLoading, kLoaded };
  State state_ = State::kNone;
  std::vector<ShardId> wanted_;
};

}  // namespace disttrain::workerd
