// Formats the frame that `top` shows on a terminal. This does no I/O.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "tools/disttrain/json.h"
#include "tools/disttrain/terminal.h"
#include "tools/disttrain/top/history.h"

namespace disttrain::cli {

struct TopView {
  std::string cluster;  // the cluster's name, or its chief's address
  Json status;          // the newest status (docs/json.md); null if there is none yet
  Json events;          // the newest events; the oldest of them is first
  TopHistory history;
  std::string problem;  // why `status` is out of date; "" = it is up to date
};

inline constexpr std::size_t kAnyHeight = std::numeric_limits<std::size_t>::max();

// Returns at most `size.rows` lines of at most `size.columns` columns. If not everything fits, it first drops tasks,
// then the curves, then the events. It keeps the tasks that are in trouble and those that lag most.
std::string top_frame(const TopView& view, TerminalSize size, bool utf8);

}  // namespace disttrain::cli
