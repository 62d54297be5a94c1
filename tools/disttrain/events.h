// The chief's events (docs/json.md) as they are shown.
#pragma once

#include <string>

#include "tools/disttrain/json.h"
#include "tools/disttrain/seen.h"

namespace disttrain::cli {

// "2026-11-20 23:45:00.123 worker/1  text": local time, the task or "-", the sentence.
std::string event_line(const Json& event);

// The events of the list that weren't seen.
Json take_new(Seen& seen, const Json& list);

}  // namespace disttrain::cli
