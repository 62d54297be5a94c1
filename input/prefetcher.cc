// Each thread reads, decodes, transforms and copies the records of a whole batch. A thread for each stage, with queues
// between them, would need a hand-over per record or per piece of a batch, and the slowest stage would limit them all.
// Whole batches need no balance, and arrive in order because each has its place in one queue.
#include "input/prefetcher.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "common/check.h"
#include "common/os/crash_stack.h"

namespace disttrain::input {

namespace {

Instant now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace

Prefetcher::Prefetcher(const Dataset& dataset, OrderOptions order, const PrefetchOptions& options)
    : dataset_(dataset), order_(std::move(order)), options_(options), low_((options.prefetch - 1) / 2) {
  DISTTRAIN_CHECK_GE(options.prefetch, 1u);
  DISTTRAIN_CHECK_GE(options.batch_size, 1u);
  DISTTRAIN_CHECK_GE(options.threads, 1u);
  DISTTRAIN_CHECK_LE(order_.records(), dataset.records());
  for (std::size_t i = 0; i < options.prefetch + kHeld; ++i) {
    free_.emplace_back(new ReadyBatch{{}, BatchBuffer(dataset, options.batch_size, options.columns), {}});
  }
  for (std::uint32_t i = 0; i < std::min(options.threads, options.prefetch); ++i) {
    try {
      threads_.emplace_back([this] {
        use_crash_stack();
        run();
      });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
      break;  // the system refuses more: these do the work
    }
    pthread_setname_np(threads_.back().native_handle(), "input");
  }
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status Prefetcher::request(workerd::BatchOrder order) {
  std::uint64_t examples = 0;
  for (const Interval& interval : order.positions) {
    if (interval.begin > interval.end || interval.end > order_.records()) {
      return fail(ErrorCode::kSoftware, "lease " + std::to_string(order.lease.value) + " has the positions [" +
                                            std::to_string(interval.begin) + ", " + std::to_string(interval.end) +
                                            "), but the data set has " + std::to_string(order_.records()) +
                                            " records: does every worker see the same files?");
    }
    examples += interval.end - interval.begin;
    if (examples > options_.batch_size) {
      return fail(ErrorCode::kSoftware, "a batch of lease " + std::to_string(order.lease.value) + " has more than " +
                                            std::to_string(options_.batch_size) + " examples");
    }
  }
  const std::lock_guard lock(mutex_);
  DISTTRAIN_CHECK_LT(slots_.size(), options_.prefetch + kHeld);
  Slot& slot = slots_.push_slot();
  slot.ticket = order.ticket;
  slot.stage = Stage::kWanted;
  slot.order = std::move(order);
  wake_if_low();
  return {};
}

std::unique_ptr<ReadyBatch> Prefetcher::try_pop() {
  const std::lock_guard lock(mutex_);
  if (slots_.empty() || slots_.front().stage != Stage::kReady) return nullptr;
  std::unique_ptr<ReadyBatch> batch = std::move(slots_.front().batch);
  slots_.pop_front();
  wake_if_low();
  return batch;
}

const ReadyBatch* Prefetcher::peek() const {
  const std::lock_guard lock(mutex_);
  const bool is_ready = !slots_.empty() && slots_.front().stage == Stage::kReady;
  return is_ready ? slots_.front().batch.get() : nullptr;
}

void Prefetcher::recycle(std::unique_ptr<ReadyBatch> batch) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(batch));
  wake_if_low();
}

// The thread that makes a batch without a slot returns its buffer itself.
void Prefetcher::release(Slot& slot) {
  if (slot.batch) free_.push_back(std::move(slot.batch));
}

void Prefetcher::drop(workerd::BatchTicket ticket) {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].ticket != ticket) continue;
      release(slots_[i]);
      slots_.erase(i);
      break;
    }
    callback = due_callback();
    wake_if_low();
  }
  if (callback) callback();
}

void Prefetcher::cancel() {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < slots_.size(); ++i) release(slots_[i]);
  slots_.clear();
}

bool Prefetcher::notify_when_ready(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (!slots_.empty() && slots_.front().stage == Stage::kReady) return false;
  callback_ = std::move(callback);
  waiting_since_ = now();
  ++stats_.stalls;
  return true;
}

PrefetchStats Prefetcher::stats() const {
  const std::lock_guard lock(mutex_);
  PrefetchStats stats = stats_;
  stats.ready = ready();
  return stats;
}

std::size_t Prefetcher::ready() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) count += slots_[i].stage == Stage::kReady ? 1 : 0;
  return count;
}

Prefetcher::Slot* Prefetcher::next_wanted() {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].stage == Stage::kWanted) return &slots_[i];
  return nullptr;
}

void Prefetcher::wake_if_low() {
  if (awake_ || ready() > low_ || !can_make()) return;
  awake_ = true;
  ++stats_.wakeups;
  wake_.notify_all();
}

void Prefetcher::run() {
  std::vector<std::uint64_t> indices;
  indices.reserve(options_.batch_size);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || awake_; });
    while (!stopping_ && can_make()) {
      std::unique_ptr<ReadyBatch> batch = std::move(free_.back());
      free_.pop_back();
      Slot& slot = *next_wanted();
      slot.stage = Stage::kMaking;
      batch->order = std::move(slot.order);

      lock.unlock();
      order_.records_at(batch->order.epoch, batch->order.positions, indices);
      batch->made =
          batch->buffer.fill(indices, {.is_training = true, .seed = options_.seed, .epoch = batch->order.epoch});
      lock.lock();

      if (const std::function<void()> callback = finish(std::move(batch))) {
        lock.unlock();
        callback();
        lock.lock();
      }
    }
    if (stopping_) return;
    awake_ = false;
  }
}

// The caller holds the lock. Returns the callback if it is due; the caller then releases the lock and calls it.
std::function<void()> Prefetcher::due_callback() {
  if (!callback_ || slots_.empty() || slots_.front().stage != Stage::kReady) return {};
  stats_.stalled += now() - waiting_since_;
  return std::exchange(callback_, nullptr);
}

std::function<void()> Prefetcher::finish(std::unique_ptr<ReadyBatch> batch) {
  std::size_t i = 0;
  while (i < slots_.size() && slots_[i].ticket != batch->order.ticket) ++i;
  if (i == slots_.size()) {  // the batch was dropped meanwhile
    free_.push_back(std::move(batch));
    return {};
  }
  ++stats_.batches;
  stats_.examples += batch->buffer.examples();
  slots_[i].batch = std::move(batch);
  slots_[i].stage = Stage::kReady;
  return due_callback();
}

}  // namespace disttrain::input
