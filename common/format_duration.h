// Formats durations for people, in log lines, reasons and tables.
#pragma once

#include <string>

#include "common/time.h"

namespace disttrain {

// Examples: "0 s", "450 us", "3.25 ms", "850 ms", "1 s", "1.5 s", "12.3 s", "120 s", "10 min", "2.5 h", "-3 s". The
// unit is the largest one in which the number is big enough: at least 1 for us, ms and s, at least 10 for min, and at
// least 2 for h. So 5 minutes are "300 s". The number has up to three digits and no trailing zeros after the point. It
// is rounded towards zero, so a text never names more time than has passed. Less than 1 us is "0 s".
//
// Don't use this for files. toml_duration() (common/config/reader/schema.h) writes durations that can be read back
// exactly.
std::string format_duration(Duration duration);

}  // namespace disttrain
