// Durations as people read them, in log lines, reasons and tables.
#pragma once

#include <string>

#include "common/time.h"

namespace disttrain {

// "0 s", "450 us", "3.25 ms", "850 ms", "1 s", "1.5 s", "12.3 s", "120 s", "10 min", "2.5 h", "-3 s": with up to three
// digits, without zeros behind the point, in the largest unit of us, ms, s, min and h of which it has at least one;
// minutes begin at ten of them, hours at two. Rounded towards zero, so nothing lasts longer than it did. Below 1 us: "0
// s".
//
// Not for files: config's toml_duration() writes what can be read back exactly.
std::string format_duration(Duration duration);

}  // namespace disttrain
