// The file of a trace, "trace-<Unix time>-steps-<first>-<last>.json" in the folder of TensorBoard's event files, and
// the thread that writes it, so that the chief's loop never waits for a file system.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
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
  // The thread calls `done`, so `done` must post to the chief's loop.
  using Done = std::function<void(const TraceBook& book, const Result<std::string>& path)>;
  explicit TraceWriter(Done done);
  // Waits until all traces are written.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;

  void write(TraceBook book);

 private:
  const Done done_;
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

}  // namespace disttrain::chiefd
