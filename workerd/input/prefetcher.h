// The input thread. It makes batches before the worker's step needs them.
//
// The worker's step thread, here called the consumer, requests batches, takes them when they are ready and returns
// their buffers. It gets the batches in the order of its requests. No call waits for a batch. Instead the consumer can
// pass a callback, which is called when a batch is ready.
//
// Waking a thread on another core takes 30 to 50 us. So the input thread makes several batches each time it is woken.
// It sleeps when it has made all requested batches. It is woken only when at most (prefetch - 1) / 2 batches are ready.
// So the consumer should take a batch only when it needs one; otherwise it would wake the input thread too early.
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

// A finished batch. It belongs to the consumer from try_pop() to recycle().
struct ReadyBatch {
  workerd::BatchOrder order;
  BatchBuffer buffer;
};

struct PrefetchStats {
  std::uint64_t batches = 0;   // batches made
  std::uint64_t examples = 0;  // examples in them
  std::uint64_t wakeups = 0;   // how often the input thread was woken
  std::uint64_t stalls = 0;    // how often the consumer had to wait and passed a callback
  Duration stalled{};          // sum of the times until these callbacks were called
  std::uint64_t ready = 0;     // batches that are ready now
};

struct PrefetchOptions {
  std::uint64_t batch_size = 0;     // maximum number of examples in a batch, >= 1
  std::uint32_t prefetch = 2;       // batches requested ahead, >= 1
  std::vector<ColumnSpec> columns;  // the model's; the data set fits them (fits.h)
};

// All calls come from the consumer's thread. The data set must outlive the prefetcher.
class Prefetcher {
 public:
  // How many batches the consumer may hold in addition to those that it has requested: one that is being computed, and
  // the next one.
  static constexpr std::size_t kHeld = 2;

  // Allocates prefetch + kHeld buffers and starts the thread.
  Prefetcher(const Dataset& dataset, EpochOrder order, const PrefetchOptions& options);
  // Drops all batches and ends the thread. If the thread is making a batch, it finishes that batch first.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Requests a batch. Returns kSoftware if one of its positions is outside the data set, or if it has more than
  // batch_size positions. The consumer may have at most prefetch + kHeld batches at a time, counting those that it has
  // requested and those that it holds.
  Status request(workerd::BatchOrder order);

  // Returns the next batch, in the order of the requests. Returns null if that batch isn't ready yet.
  std::unique_ptr<ReadyBatch> try_pop();

  // The batch that try_pop() would return now; null if it isn't ready yet. Valid until the consumer's next call of
  // try_pop(), drop() or cancel().
  const ReadyBatch* peek() const;

  // Returns the buffer.
  void recycle(std::unique_ptr<ReadyBatch> batch);

  // Cancels the request for one batch. try_pop() will not return it.
  void drop(workerd::BatchTicket ticket);
  // Cancels all requests, because their leases are void.
  void cancel();

  // Calls `callback` once, on the input thread, as soon as a batch is ready. If a batch is already ready, returns false
  // and doesn't keep the callback. Another call replaces the callback; drop() and cancel() don't remove it.
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
  const std::size_t low_;  // the thread is woken if at most this many batches are ready

  // Owned by the input thread.
  EpochOrder order_;
  std::vector<std::uint64_t> indices_;

  // mutex_ guards the members from here to stats_. No thread holds it while a batch is made or the callback runs.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool awake_ = false;  // the input thread is working or has been woken
  Fifo<workerd::BatchOrder> wanted_;
  std::optional<Making> making_;
  Fifo<std::unique_ptr<ReadyBatch>> ready_;
  std::vector<std::unique_ptr<ReadyBatch>> free_;
  std::function<void()> callback_;
  Instant waiting_since_{};
  PrefetchStats stats_;

  std::thread thread_;  // the last member, because the thread uses the other members
};

}  // namespace disttrain::input
