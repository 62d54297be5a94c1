// How much time the stages of reading a data set took. The threads that read it add to the counts, and others read
// them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace disttrain::input {

struct DataFigures {
  // Nanoseconds, summed over all threads.
  std::atomic<std::uint64_t> read_ns = 0;       // reading bytes of files, and decompressing them
  std::atomic<std::uint64_t> decode_ns = 0;     // finding the values of the columns in these bytes
  std::atomic<std::uint64_t> transform_ns = 0;  // making the arrays of [data.columns]
  std::atomic<std::uint64_t> batch_ns = 0;      // copying the records of a batch into its arrays
  std::atomic<std::uint64_t> bytes_read = 0;
};

// Adds the time from its construction to its end.
class StageTimer {
 public:
  explicit StageTimer(std::atomic<std::uint64_t>& to) : to_(to), begin_(std::chrono::steady_clock::now()) {}
  ~StageTimer() {
    const auto took = std::chrono::steady_clock::now() - begin_;
    to_.fetch_add(static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()), std::memory_order_relaxed);
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  std::atomic<std::uint64_t>& to_;
  const std::chrono::steady_clock::time_point begin_;
};

}  // namespace disttrain::input
