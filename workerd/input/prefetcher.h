// The input thread: makes the batches that the worker's core orders, before they are needed.
//
// The consumer (the worker's step thread) orders batches, takes the finished ones in the same order and returns their
// buffers. No call waits for a batch. To sleep until a batch is ready, the consumer leaves a callback.
//
// Wake-ups are expensive (30 to 50 us between cores), so the input thread works in bursts: it sleeps when nothing is
// left to make, and is woken only when at most (prefetch - 1) / 2 batches are ready. Take batches as late as possible,
// one when one is needed: those that wait here count as ready.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/fifo.h"
#include "common/result.h"
#include "common/time.h"
#include "workerd/core/events.h"
#include "workerd/input/batch_buffer.h"
#include "workerd/input/dataset.h"
#include "workerd/input/order.h"

namespace disttrain::input {

// A finished batch. Belongs to its taker until it is recycled.
struct ReadyBatch {
  workerd::BatchOrder order;
  BatchBuffer buffer;
};

struct PrefetchStats {
  std::uint64_t batches = 0;   // batches made
  std::uint64_t examples = 0;  // examples in them
  std::uint64_t wakeups = 0;   // of the input thread
  std::uint64_t stalls = 0;    // times that the consumer left a callback
  Duration stalled{};          // time until it was called
  std::uint64_t ready = 0;     // batches ready now
};

struct PrefetchOptions {
  std::uint64_t batch_size = 0;    // most examples of a batch, >= 1
  std::uint32_t prefetch = 2;      // batches requested ahead, >= 1
  std::uint64_t target_width = 0;  // see fits.h
};

// A resource. All calls come from one thread, the consumer's; the data set outlives it.
class Prefetcher {
 public:
  // Batches that the consumer may hold beside the requested ones: one being computed, one on its way.
  static constexpr std::size_t kHeld = 2;

  // Allocates prefetch + kHeld buffers and starts the thread.
  Prefetcher(const Dataset& dataset, EpochOrder order, const PrefetchOptions& options);
  // Drops everything and ends the thread; a batch that is being made is finished first.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Errors, kSoftware, from a wrong lease: positions outside the data set, more examples than a batch. At most prefetch
  // + kHeld batches may be requested, ready or held at a time; one more is a bug.
  Status request(workerd::BatchOrder order);

  // The next batch, in the order of the requests; null if it isn't finished.
  std::unique_ptr<ReadyBatch> try_pop();

  // Returns the buffer.
  void recycle(std::unique_ptr<ReadyBatch> batch);

  // The batch isn't wanted any more: try_pop() doesn't return it.
  void drop(workerd::BatchTicket ticket);
  // No batch is wanted: the leases are void.
  void cancel();

  // Calls `callback` once, on the input thread, when a batch is ready. False: a batch is ready now, and the callback
  // isn't kept. Another call replaces the callback. drop() and cancel() keep it.
  bool notify_when_ready(std::function<void()> callback);

  // Any thread.
  PrefetchStats stats() const;

 private:
  struct Making {
    workerd::BatchTicket ticket;
    bool dropped = false;
  };

  void run();
  bool can_make() const { return !wanted_.empty() && !free_.empty(); }
  void wake_if_low();
  std::function<void()> finish(std::unique_ptr<ReadyBatch> batch);

  // Constant after construction.
  const Dataset& dataset_;
  const std::uint64_t records_;
  const PrefetchOptions options_;
  const std::size_t low_;  // ready batches at which the thread is woken

  // Owned by the input thread.
  EpochOrder order_;
  std::vector<std::uint64_t> indices_;

  // Guarded by mutex_, which is held only briefly: never while a batch is made or the callback runs.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool awake_ = false;  // the thread works or has been woken
  Fifo<workerd::BatchOrder> wanted_;
  std::optional<Making> making_;
  Fifo<std::unique_ptr<ReadyBatch>> ready_;
  std::vector<std::unique_ptr<ReadyBatch>> free_;
  std::function<void()> callback_;
  Instant waiting_since_{};
  PrefetchStats stats_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace disttrain::input
