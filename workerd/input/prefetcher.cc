#include "workerd/input/prefetcher.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/check.h"

namespace disttrain::input {

namespace {

Instant now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace

Prefetcher::Prefetcher(const Dataset& dataset, EpochOrder order, const PrefetchOptions& options)
    : dataset_(dataset),
      records_(order.records()),
      options_(options),
      low_((options.prefetch - 1) / 2),
      order_(std::move(order)) {
  DISTTRAIN_CHECK_GE(options.prefetch, 1u);
  DISTTRAIN_CHECK_GE(options.batch_size, 1u);
  DISTTRAIN_CHECK_LE(records_, dataset.records());
  for (std::size_t i = 0; i < options.prefetch + kHeld; ++i) {
    free_.emplace_back(new ReadyBatch{{}, BatchBuffer(options.batch_size, options.columns)});
  }
  indices_.reserve(options.batch_size);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "input");
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Status Prefetcher::request(workerd::BatchOrder order) {
  std::uint64_t examples = 0;
  for (const Interval& interval : order.positions) {
    if (interval.begin > interval.end || interval.end > records_) {
      return fail(ErrorCode::kSoftware, "lease " + std::to_string(order.lease.value) + " has the positions [" +
                                            std::to_string(interval.begin) + ", " + std::to_string(interval.end) +
                                            "), but the data set has " + std::to_string(records_) +
                                            " records: does every worker see the same files?");
    }
    examples += interval.end - interval.begin;
    if (examples > options_.batch_size) {
      return fail(ErrorCode::kSoftware, "a batch of lease " + std::to_string(order.lease.value) + " has more than " +
                                            std::to_string(options_.batch_size) + " examples");
    }
  }
  const std::lock_guard lock(mutex_);
  DISTTRAIN_CHECK_LT(wanted_.size() + ready_.size(), options_.prefetch + kHeld);
  wanted_.push_back(std::move(order));
  wake_if_low();
  return {};
}

std::unique_ptr<ReadyBatch> Prefetcher::try_pop() {
  const std::lock_guard lock(mutex_);
  if (ready_.empty()) return nullptr;
  std::unique_ptr<ReadyBatch> batch = std::move(ready_.front());
  ready_.pop_front();
  wake_if_low();
  return batch;
}

const ReadyBatch* Prefetcher::peek() const {
  const std::lock_guard lock(mutex_);
  return ready_.empty() ? nullptr : ready_.front().get();
}

void Prefetcher::recycle(std::unique_ptr<ReadyBatch> batch) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(batch));
  wake_if_low();
}

void Prefetcher::drop(workerd::BatchTicket ticket) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < wanted_.size(); ++i)
    if (wanted_[i].ticket == ticket) {
      wanted_.erase(i);
      break;
    }
  if (making_ && making_->ticket == ticket) making_->dropped = true;
  for (std::size_t i = 0; i < ready_.size(); ++i)
    if (ready_[i]->order.ticket == ticket) {
      free_.push_back(std::move(ready_[i]));
      ready_.erase(i);
      break;
    }
  wake_if_low();
}

void Prefetcher::cancel() {
  const std::lock_guard lock(mutex_);
  wanted_.clear();
  if (making_) making_->dropped = true;
  for (; !ready_.empty(); ready_.pop_front()) free_.push_back(std::move(ready_.front()));
}

bool Prefetcher::notify_when_ready(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (!ready_.empty()) return false;
  callback_ = std::move(callback);
  waiting_since_ = now();
  ++stats_.stalls;
  return true;
}

PrefetchStats Prefetcher::stats() const {
  const std::lock_guard lock(mutex_);
  PrefetchStats stats = stats_;
  stats.ready = ready_.size();
  return stats;
}

void Prefetcher::wake_if_low() {
  if (awake_ || ready_.size() > low_ || !can_make()) return;
  awake_ = true;
  ++stats_.wakeups;
  wake_.notify_one();
}

void Prefetcher::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || awake_; });
    while (!stopping_ && can_make()) {
      std::unique_ptr<ReadyBatch> batch = std::move(free_.back());
      free_.pop_back();
      batch->order = std::move(wanted_.front());
      wanted_.pop_front();
      making_ = Making{batch->order.ticket, false};

      lock.unlock();
      order_.records_at(batch->order.epoch, batch->order.positions, indices_);
      batch->buffer.fill(dataset_, indices_);
      lock.lock();

      if (const std::function<void()> callback = finish(std::move(batch))) {
        lock.unlock();
        callback();
        lock.lock();
      }
    }
    if (stopping_) return;
    // This must not be done before the first wait, because a request may have set awake_ before this thread began.
    awake_ = false;
  }
}

// The caller holds the lock. If a callback is due, returns it; the caller then releases the lock and calls it.
std::function<void()> Prefetcher::finish(std::unique_ptr<ReadyBatch> batch) {
  const bool dropped = making_->dropped;
  making_.reset();
  if (dropped) {
    free_.push_back(std::move(batch));
    return {};
  }
  ++stats_.batches;
  stats_.examples += batch->buffer.examples();
  ready_.push_back(std::move(batch));
  if (!callback_) return {};
  stats_.stalled += now() - waiting_since_;
  return std::exchange(callback_, nullptr);
}

}  // namespace disttrain::input
