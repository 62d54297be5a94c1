// OutputLines cuts what a trainer prints into lines, and remembers the last ones for the error that explains its end.
// What a trainer prints may be anything: lines of any length, terminal control characters, bytes that aren't text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "common/time.h"

namespace disttrain::workerd {

inline constexpr std::size_t kMaxOutputLineBytes = 2000;  // the rest of a longer line is dropped
inline constexpr std::size_t kKeptOutputLines = 30;
inline constexpr std::size_t kKeptOutputBytes = 3000;  // of all kept lines; fits into kMaxTextBytes with the sentence

// A trainer that prints without end must not fill the disk of the log. So the log gets this many lines at once, and
// this many in each further second.
inline constexpr double kLoggedLinesAtOnce = 2000;
inline constexpr double kLoggedLinesPerSecond = 100;

// Decides which lines go to the log.
class LineLimit {
 public:
  // Whether the next line goes to the log. `now` never decreases.
  bool admits(Instant now);
  // How many lines weren't admitted since the last call.
  std::uint64_t take_dropped();

 private:
  double room_ = kLoggedLinesAtOnce;
  Instant filled_at_{};  // when room_ was computed; the epoch: never
  std::uint64_t dropped_ = 0;
};

// The last lines of all streams of a process, in the order in which they came.
class LastLines {
 public:
  void add(const std::string& line);
  // The lines, safe to show, each after a newline and two blanks. "" if there are none.
  std::string text() const;

 private:
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
};

class OutputLines {
 public:
  // Gets each line without its newline. Empty lines are left out. The line isn't safe to show yet (common/printable.h):
  // most lines of a process that prints without end are never shown.
  using OnLine = std::function<void(const std::string& line)>;

  void add(std::string_view bytes, const OnLine& on_line);
  // The stream has ended: an unfinished last line is a line, too.
  void end(const OnLine& on_line);

 private:
  void append(std::string_view part);

  std::string partial_;  // the line that hasn't ended yet
  bool is_cut_ = false;  // the rest of this line is dropped
};

}  // namespace disttrain::workerd
