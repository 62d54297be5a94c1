// Writes lines to stderr without waiting long. If stderr is a pipe that nobody reads, or a stopped terminal, a plain
// write blocks the thread for as long as that lasts, and a step or a heartbeat with it.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace disttrain::daemon {

// How long a line waits for room. While nobody reads, only the first line waits; the others are dropped at once.
inline constexpr int kStderrPatienceMs = 1000;

// Any thread may call write(). A process has one object of this class.
class StderrLines {
 public:
  // Writes the line and a newline, or drops the line if stderr has no room for it. Before the next line that is
  // written, a line of its own says how many were dropped.
  void write(const std::string& line);

 private:
  // Returns false if stderr has taken only a part. `text` may be of any length.
  bool write_all(std::string_view text);
  bool has_room();

  std::mutex mutex_;      // guards the members below, and keeps lines whole; held for at most kStderrPatienceMs a piece
  bool is_full_ = false;  // the last try found no room
  bool is_cut_ = false;   // the last line was written in part
  std::uint64_t dropped_ = 0;
};

}  // namespace disttrain::daemon
