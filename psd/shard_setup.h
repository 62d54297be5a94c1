// Shared by the main loop and the shard threads while they make a job's shards: the progress, and whether the shards
// are still wanted. Restoring 40 GB takes minutes; a newer order, or the job's end, mustn't wait for that.
#pragma once

#include <atomic>
#include <cstdint>

namespace disttrain::psd {

// All calls from any thread.
class ShardSetup {
 public:
  // A shard's thread has done a piece. True: the shards were abandoned, and the thread should stop.
  bool note_piece() {
    pieces_.fetch_add(1, std::memory_order_relaxed);
    return is_abandoned();
  }
  // Pieces done for all shards; only grows.
  std::uint64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }

  void abandon() { is_abandoned_.store(true, std::memory_order_relaxed); }
  bool is_abandoned() const { return is_abandoned_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> pieces_ = 0;
  std::atomic<bool> is_abandoned_ = false;
};

}  // namespace disttrain::psd
