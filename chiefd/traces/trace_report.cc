#include "chiefd/traces/trace_report.h"

#include <cstdint>

namespace disttrain::chiefd {

TraceWritten trace_report(const TraceBook& book, const Result<std::string>& path) {
  const std::string what =
      "the trace of steps " + std::to_string(book.steps[0]) + " to " + std::to_string(book.steps[1]);
  if (!path) return {book.job, "", false, what + " can't be written; training goes on: " + path.error().message};
  std::string missing;
  for (const TaskId task : book.missing) missing += (missing.empty() ? "" : ", ") + to_string(task);
  std::uint64_t dropped = book.dropped;
  for (const TaskTrace& trace : book.tasks) dropped += trace.dropped;
  std::string text = what + " is in " + *path;
  if (!missing.empty()) text += "; it lacks events of " + missing + ", which didn't send them in time";
  if (dropped > 0)
    text += "; " + std::to_string(dropped) + " events are dropped, because they were too many: profile fewer steps";
  return {book.job, *path, missing.empty() && dropped == 0, text};
}

}  // namespace disttrain::chiefd
