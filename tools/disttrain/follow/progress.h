// Shows a job's progress: on a terminal as a bar that is redrawn, elsewhere as a line every 3 s.
#pragma once

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include "tools/disttrain/json.h"

namespace disttrain::cli {

// "running  step 1,234/2,750 (44%)  182,000 examples/s  loss 0.3121  ETA 0:12". Pure.
std::string progress_line(const Json& status);
// A reason or a warning in one line. Its other lines are what a trainer printed last, and the last one of these says
// best why it failed: "lost worker/0: the trainer ended with exit code 1: ValueError: bad label". Pure.
std::string headline(const std::string& text);
// "3 steps were skipped, because ...", with what to do; "" if the job has skipped no step. Pure.
std::string skipped_text(const Json& status);
// Returns the index of the first warning in `now` that wasn't in `before`. Both are a job's newest warnings, oldest
// first. The chief drops the oldest ones, and a restarted chief may have lost the newest ones. The same text may come
// again. Pure.
std::size_t first_new_warning(const std::vector<std::string>& before, const std::vector<std::string>& now);
// Prints a line on stderr. If a progress bar is on the terminal, the line comes below the bar.
void say_below_bar(const std::string& line);
// "[#########-----------]". A share below 0 counts as 0, a share above 1 as 1.
std::string bar(double share, std::size_t width);
// "0:12", "1:02:03".
std::string clock_text(double seconds);
// 1234567 -> "1,234,567".
std::string with_commas(double number);

class Progress {
 public:
  explicit Progress(std::ostream& out);
  // Warns once when the job has skipped a step. Prints the headline() of each new warning of the job.
  void show(const Json& status);
  // Prints a line above the bar.
  void say(const std::string& line);
  // Ends the line of the bar, so that other output begins on a new line.
  void end();

 private:
  void warn(const std::string& text);
  void show_warnings(const Json& status);

  std::ostream& out_;
  const bool is_terminal_;
  bool is_bar_open_ = false;
  bool has_told_skipped_ = false;
  std::vector<std::string> warnings_;  // of the last status
  std::string last_state_;
  std::chrono::steady_clock::time_point next_line_{};
};

}  // namespace disttrain::cli
