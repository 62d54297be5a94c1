// The file of a trace, "trace-<Unix time>-steps-<first>-<last>.json" in the folder of TensorBoard's event files, and
// the threads that write such files, so that neither the chief's loop nor another trace waits for a file system.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "chiefd/traces/trace_book.h"
#include "common/result.h"

namespace disttrain::chiefd {

// Writes the file, and returns its path. Creates the folder if it is missing, but not the folder's parent, because its
// file system may not be mounted. Writes to a temporary file and renames it, so that a reader never sees half a trace.
// After an error no file is left.
Result<std::string> write_trace_file(const TraceBook& book, std::int64_t wall_seconds);

class TraceWriter {
 public:
  // The most traces that are being written at the same time. A further one isn't written.
  static constexpr std::size_t kMostTraces = 16;

  // A thread calls `done`, so `done` must post to the chief's loop.
  using Done = std::function<void(const TraceBook& book, const Result<std::string>& path)>;
  explicit TraceWriter(Done done);
  // Waits until all traces are written.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;

  void write(TraceBook book);

 private:
  struct Lane {
    std::atomic<bool> is_over = false;
    std::thread thread;
  };
  void reap();

  const Done done_;
  std::list<Lane> lanes_;  // one for each trace that is being written
};

}  // namespace disttrain::chiefd
