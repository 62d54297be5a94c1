// Boards: the step thread writes its newest values there, and the main loop reads them. One board has the worker's
// progress for heartbeats, another has counts for metrics.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <vector>

#include "common/ids.h"
#include "common/model_metric.h"
#include "workerd/core/worker_core.h"
#include "workerd/worker_figures.h"

namespace disttrain::workerd {

struct BoardEntry {
  JobId job;  // 0 = idle
  Generation generation;
  Progress progress;
  Wires wires = 0;  // of the channels that are open
};

// Holds the newest value that one thread has written; any thread may read it. The step thread writes several times in
// each step. So this class uses a seqlock instead of a mutex: if a write happens during a read, the reader reads again
// (Boehm, "Can seqlocks get along with programming language memory models?", 2012). Each word is an atomic, because
// thread sanitizers don't understand fences.
template <typename Entry>
class Newest {
 public:
  static_assert(std::is_trivially_copyable_v<Entry>);

  void write(const Entry& entry) {
    Words words{};
    std::memcpy(words.data(), &entry, sizeof entry);
    const std::uint64_t turn = turn_.load(std::memory_order_relaxed);
    turn_.store(turn + 1, std::memory_order_relaxed);  // odd while an entry is being written
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    turn_.store(turn + 2, std::memory_order_release);
  }

  Entry read() const {
    Words words;
    for (;;) {
      const std::uint64_t turn = turn_.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      if (turn % 2 == 0 && turn_.load(std::memory_order_relaxed) == turn) break;
    }
    Entry entry;
    std::memcpy(static_cast<void*>(&entry), words.data(), sizeof entry);
    return entry;
  }

 private:
  static constexpr std::size_t kWords = (sizeof(Entry) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  using Words = std::array<std::uint64_t, kWords>;

  std::atomic<std::uint64_t> turn_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};  // zeros stand for an empty Entry
};

// Holds the newest value that was written. Any thread may write it and read it. A Board is for values that are rarely
// written, because it locks a mutex.
template <typename Entry>
class Board {
 public:
  void write(const Entry& entry) {
    const std::lock_guard lock(mutex_);
    entry_ = entry;
  }
  Entry read() const {
    const std::lock_guard lock(mutex_);
    return entry_;
  }

 private:
  mutable std::mutex mutex_;  // guards entry_; no other lock is taken under it
  Entry entry_;
};

// The model's metrics over the examples of the newest steps, for heartbeats.
struct StepMetrics {
  std::vector<MetricSpec> metrics;
  std::vector<double> accumulators;  // empty: the engine computes none while it trains
};

using ProgressBoard = Newest<BoardEntry>;
using FiguresBoard = Board<WorkerFigures>;
using MetricsBoard = Board<StepMetrics>;

}  // namespace disttrain::workerd
