// What the making of a job's shards shares between the main loop and their threads: how far it is, and whether anybody
// still wants it. Restoring 40 GB takes minutes; a newer order, or the job's end, mustn't wait for that.
#pragma once

#include <atomic>
#include <cstdint>

namespace disttrain::psd {

// All calls from any thread.
class ShardSetup {
 public:
  // A shard's thread has done a piece. True: nobody wants the shards any more, and the thread should leave them.
  bool note_piece() {
    pieces_.fetch_add(1, std::memory_order_relaxed);
    return is_abandoned();
  }
  // Of all shards; it only grows.
  std::uint64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }

  void abandon() { is_abandoned_.store(true, std::memory_order_relaxed); }
  bool is_abandoned() const { return is_abandoned_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> pieces_ = 0;
  std::atomic<bool> is_abandoned_ = false;
};

}  // namespace disttrain::psd
