#include "chiefd/traces/trace_report.h"

#include <cstdint>

namespace disttrain::chiefd {

namespace {

std::string trace_of_steps(const TraceBook& book) {
  return "trace of steps " + std::to_string(book.steps[0]) + " to " + std::to_string(book.steps[1]);
}

std::string missing_tasks(const TraceBook& book) {
  std::string tasks;
  for (const TaskId task : book.missing) tasks += (tasks.empty() ? "" : ", ") + to_string(task);
  return tasks;
}

}  // namespace

TraceWritten trace_report(const TraceBook& book, const Result<std::string>& path) {
  const std::string what = "the " + trace_of_steps(book);
  if (!path) return {book.job, "", false, what + " can't be written; training goes on: " + path.error().message};
  const std::string missing = missing_tasks(book);
  std::uint64_t dropped = book.dropped;
  for (const TaskTrace& trace : book.tasks) dropped += trace.dropped;
  std::string text = what + " is in " + *path;
  if (!missing.empty()) text += "; it lacks events of " + missing + ", which didn't send them in time";
  if (dropped > 0)
    text += "; " + std::to_string(dropped) + " events are dropped, because they were too many: profile fewer steps";
  return {book.job, *path, missing.empty() && dropped == 0, text};
}

TraceWritten empty_trace_report(const TraceBook& book) {
  const std::string missing = missing_tasks(book);
  const std::string why = missing.empty() ? "no task has recorded any of them"
                                          : "these tasks didn't send their events in time, and the other tasks have "
                                            "recorded none: " +
                                                missing;
  return {book.job, "", false,
          "this chief has written no " + trace_of_steps(book) + " (train.profile_steps), because " + why};
}

}  // namespace disttrain::chiefd
