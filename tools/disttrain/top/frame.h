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
  std::string cluster;  // its name, or where its chief is
  Json status;          // the newest (docs/json.md); null: none yet
  Json events;          // the newest, oldest first
  TopHistory history;
  std::string problem;  // why there is nothing newer; "": there is
};

inline constexpr std::size_t kAnyHeight = std::numeric_limits<std::size_t>::max();

// Lines, each at most `size.columns` wide, at most `size.rows` of them. What doesn't fit is left out: first of the
// tasks all but those who are ill or behind, then the curves, then the events.
std::string top_frame(const TopView& view, TerminalSize size, bool utf8);

}  // namespace disttrain::cli
