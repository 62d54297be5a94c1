// OutputLines cuts what a trainer prints into lines, and remembers the last ones for the error that explains its end.
// What a trainer prints may be anything: lines of any length, terminal control characters, bytes that aren't text.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace disttrain::workerd {

inline constexpr std::size_t kMaxOutputLineBytes = 2000;  // the rest of a longer line is dropped
inline constexpr std::size_t kKeptOutputLines = 30;
inline constexpr std::size_t kKeptOutputBytes = 3000;  // of all kept lines; fits into kMaxTextBytes with the sentence

// The last lines of all streams of a process, in the order in which they came.
class LastLines {
 public:
  void add(const std::string& line);
  // The lines, each after a newline and two blanks. "" if there are none.
  std::string text() const;

 private:
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
};

class OutputLines {
 public:
  // Gets each line, safe to show (common/printable.h), without its newline. Empty lines are left out.
  using OnLine = std::function<void(const std::string& line)>;

  void add(std::string_view bytes, const OnLine& on_line);
  // The stream has ended: an unfinished last line is a line, too.
  void end(const OnLine& on_line);

 private:
  std::string partial_;  // the line that hasn't ended yet
  bool is_cut_ = false;  // the rest of this line is dropped
};

}  // namespace disttrain::workerd
