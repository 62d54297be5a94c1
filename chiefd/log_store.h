// The newest log lines of each task. The chief keeps them, so that `disttrain logs` and the root cause of a failed job
// can show the lines of a task that was killed. Only the chief's loop uses this class.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/messages/client.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

inline constexpr std::size_t kKeptLines = 1000;                        // per task
inline constexpr std::size_t kKeptBytes = std::size_t{1} << 20;        // per task
inline constexpr std::size_t kMaxAnswerLines = 20000;                  // per answer
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{16} << 20;  // per answer

// Which lines a reader asked for.
struct LogFilter {
  std::vector<TaskId> tasks;  // empty = all
  std::uint8_t level = 0;     // at least
  std::int64_t since_wall_nanoseconds = 0;
  std::int64_t until_wall_nanoseconds = INT64_MAX;

  bool passes(const LogLine& line) const;
  bool takes(TaskId task) const;
};

class LogStore {
 public:
  // Adds lines that `task` has sent. Each line is stored under this task, even if the line names another, and its text
  // is cut to kMaxTextBytes.
  void add(TaskId task, LogLines lines);

  // The newest lines that pass the filter, in order of time. At most kMaxAnswerLines lines, with at most
  // kMaxAnswerBytes of text.
  std::vector<LogLine> find(const LogFilter& filter) const;

  // The newest `count` lines of the task that pass the filter, oldest first.
  std::vector<std::string> tail(TaskId task, std::size_t count, const LogFilter& filter = {}) const;

 private:
  struct Kept {
    std::deque<LogLine> lines;
    std::size_t bytes = 0;  // of their texts
  };
  std::map<TaskId, Kept> lines_;
};

}  // namespace disttrain::chiefd
