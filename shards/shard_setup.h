// State that the main loop and the shard threads share while the threads make a job's shards: how much is done, and
// whether the shards are still needed. To restore 40 GB takes minutes. So when a newer order comes or the job ends, the
// main loop abandons the shards, and the threads stop early.
#pragma once

#include <atomic>
#include <cstdint>

namespace disttrain::shards {

// Any thread may make all calls.
class ShardSetup {
 public:
  // Counts a piece of work that a shard's thread has done. Returns true if the shards were abandoned; then the thread
  // should stop.
  bool note_piece() {
    pieces_.fetch_add(1, std::memory_order_relaxed);
    return is_abandoned();
  }
  // The number of pieces that are done, for all shards together. It only grows.
  std::uint64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }

  void abandon() { is_abandoned_.store(true, std::memory_order_relaxed); }
  bool is_abandoned() const { return is_abandoned_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> pieces_ = 0;
  std::atomic<bool> is_abandoned_ = false;
};

}  // namespace disttrain::shards
