// What an event (docs/json.md) looks like on a terminal.
#pragma once

#include <string>

#include "tools/disttrain/json.h"

namespace disttrain::cli {

// "2026-11-20 23:45:00.123 worker/1  text": local time, the task or "-", the sentence.
std::string event_line(const Json& event);

}  // namespace disttrain::cli
