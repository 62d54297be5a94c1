// Formats the chief's events (docs/json.md), and drops those that were shown before.
#pragma once

#include <string>

#include "tools/disttrain/follow/repeat_filter.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

// Returns a line such as "2026-11-20 23:45:00.123 worker/1  text": the local time, the task or "-", and the event's
// text.
std::string event_line(const Json& event);

// Returns those events of the list that `filter` hasn't seen yet.
Json take_new(RepeatFilter& filter, const Json& list);

}  // namespace disttrain::cli
