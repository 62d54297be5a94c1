// The input threads. They make batches before the worker's step needs them. Each thread makes one batch at a time: it
// finds, reads, decodes and converts the batch's records.
//
// The worker's step thread, here called the consumer, requests batches, takes them when they are ready and returns
// their buffers. It gets the batches in the order of its requests. No call waits for a batch. Instead the consumer can
// pass a callback, which is called when a batch is ready.
//
// Waking a thread on another core takes 30 to 50 us. So an input thread makes several batches each time it is woken. It
// sleeps when all requested batches are made or being made. It is woken only when at most (prefetch - 1) / 2 batches
// are ready. So the consumer should take a batch only when it needs one; otherwise it would wake the input threads too
// early.
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
#include "input/batch_buffer.h"
#include "input/dataset.h"
#include "input/order.h"
#include "workerd/core/events.h"

namespace disttrain::input {

// A finished batch. It belongs to the consumer from try_pop() to recycle().
struct ReadyBatch {
  workerd::BatchOrder order;
  BatchBuffer buffer;
  Status made;  // an error: the records couldn't be read, and the buffer has none
};

struct PrefetchStats {
  std::uint64_t batches = 0;   // batches made
  std::uint64_t examples = 0;  // examples in them
  std::uint64_t wakeups = 0;   // how often the input threads were woken
  std::uint64_t stalls = 0;    // how often the consumer had to wait and passed a callback
  Duration stalled{};          // sum of the times until these callbacks were called
  std::uint64_t ready = 0;     // batches that are ready now
};

struct PrefetchOptions {
  std::uint64_t batch_size = 0;     // maximum number of examples in a batch, >= 1
  std::uint32_t prefetch = 2;       // batches requested ahead, >= 1
  std::uint32_t threads = 1;        // input threads, >= 1; more than prefetch make no difference
  std::uint64_t seed = 0;           // of the job, for random changes of records
  std::vector<ColumnSpec> columns;  // the model's; the data set fits them (fits.h)
};

// All calls come from the consumer's thread. The data set must outlive the prefetcher.
class Prefetcher {
 public:
  // How many batches the consumer may hold in addition to those that it has requested: one that is being computed, and
  // the next one.
  static constexpr std::size_t kHeld = 2;

  // Allocates prefetch + kHeld buffers and starts the threads. The order has at most as many records as the data set.
  Prefetcher(const Dataset& dataset, OrderOptions order, const PrefetchOptions& options);
  // Drops all batches and ends the threads. A thread that is making a batch finishes that batch first.
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

  // Calls `callback` once, on an input thread or in drop(), as soon as the next batch is ready. If it is ready already,
  // returns false and doesn't keep the callback. Another call replaces the callback; drop() and cancel() don't remove
  // it.
  bool notify_when_ready(std::function<void()> callback);

  // Any thread.
  PrefetchStats stats() const;

 private:
  enum class Stage : std::uint8_t { kWanted, kMaking, kReady };
  // A requested batch.
  struct Slot {
    workerd::BatchTicket ticket;
    Stage stage = Stage::kWanted;
    workerd::BatchOrder order;          // kWanted
    std::unique_ptr<ReadyBatch> batch;  // kReady
  };

  void run();
  Slot* next_wanted();
  bool can_make() { return !free_.empty() && next_wanted() != nullptr; }
  std::size_t ready() const;
  void release(Slot& slot);
  void wake_if_low();
  std::function<void()> due_callback();
  std::function<void()> finish(std::unique_ptr<ReadyBatch> batch);

  // Constant after construction.
  const Dataset& dataset_;
  const EpochOrder order_;
  const PrefetchOptions options_;
  const std::size_t low_;  // the threads are woken if at most this many batches are ready

  // mutex_ guards the members from here to stats_. No thread holds it while a batch is made or the callback runs.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool awake_ = false;  // the input threads work or have been woken
  Fifo<Slot> slots_;    // in the order of the requests
  std::vector<std::unique_ptr<ReadyBatch>> free_;
  std::function<void()> callback_;
  Instant waiting_since_{};
  PrefetchStats stats_;

  std::vector<std::thread> threads_;  // the last member, because the threads use the other members
};

}  // namespace disttrain::input
