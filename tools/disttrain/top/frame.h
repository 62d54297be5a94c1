// What `top` shows at one moment, as text for a terminal of some size. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "tools/disttrain/json.h"
#include "tools/disttrain/terminal.h"
#include "tools/disttrain/top/history.h"

namespace disttrain::cli {

struct TopView {
  std::string cluster;  // its name, or its chief's address
  Json status;          // the newest (docs/json.md); null: none yet
  Json events;          // the newest, oldest first
  TopHistory history;
  std::string problem;  // why `status` is out of date; "": it isn't
};

inline constexpr std::size_t kAnyHeight = std::numeric_limits<std::size_t>::max();

// At most `size.rows` lines, each at most `size.columns` wide. What doesn't fit is dropped: first the tasks that are
// neither in trouble nor furthest behind, then the curves, then the events.
std::string top_frame(const TopView& view, TerminalSize size, bool utf8);

}  // namespace disttrain::cli
