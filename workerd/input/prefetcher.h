// The input thread: makes the batches that the worker's core asks for before they are needed.
//
// The consumer (the worker's step thread) hands in orders, takes finished batches in the same order, gives their
// buffers back. None of its calls waits for a batch to be made. To sleep until one is there it leaves a callback.
//
// Wake-ups are dear (30 to 50 us between cores), so the input thread works in bursts: it sleeps when nothing is left to
// make, and is woken only when at most (prefetch - 1) / 2 batches are ready. It pays to take batches as late as
// possible, one when one is needed: those that wait here count as ready.
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

// A finished batch. Belongs to who took it until it is recycled.
struct ReadyBatch {
  workerd::BatchOrder order;
  BatchBuffer buffer;
};

struct PrefetchStats {
  std::uint64_t batches = 0;   // made
  std::uint64_t examples = 0;  // in them
  std::uint64_t wakeups = 0;   // of the input thread
  std::uint64_t stalls = 0;    // times that the consumer left a callback
  Duration stalled{};          // until it was called
  std::uint64_t ready = 0;     // now
};

struct PrefetchOptions {
  std::uint64_t batch_size = 0;    // most examples of a batch, >= 1
  std::uint32_t prefetch = 2;      // batches asked for ahead, >= 1
  std::uint64_t target_width = 0;  // see fits.h
};

// A resource. All calls come from one thread, the consumer's; the data set outlives it.
class Prefetcher {
 public:
  // Batches that the consumer may hold at once, beside those asked for: one in the computation, one on its way.
  static constexpr std::size_t kHeld = 2;

  // Allocates prefetch + kHeld buffers and starts the thread.
  Prefetcher(const Dataset& dataset, EpochOrder order, const PrefetchOptions& options);
  // Drops everything and ends the thread; a batch that is being made is finished first.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Errors, kSoftware: positions that the data set doesn't have, more examples than a batch (from a wrong lease).
  // At most prefetch + kHeld batches are asked for, ready or held at a time; one more is a bug.
  Status request(workerd::BatchOrder order);

  // The next batch, in the order of the requests; null if it isn't finished.
  std::unique_ptr<ReadyBatch> try_pop();

  // Gives the buffer back.
  void recycle(std::unique_ptr<ReadyBatch> batch);

  // The batch isn't wanted any more: it won't come out, unless it already has.
  void drop(workerd::BatchTicket ticket);
  // None of them is wanted: leases are void.
  void cancel();

  // Calls `callback` once, on the input thread, when a batch is ready. False: one already is, nothing will be called.
  // Another call replaces the callback. drop() and cancel() leave it.
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

  // The input thread's.
  EpochOrder order_;
  std::vector<std::uint64_t> indices_;

  // Guarded by mutex_, which is held for moments only: never while a batch is made or the callback runs.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool awake_ = false;  // the thread works, or has been woken
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
