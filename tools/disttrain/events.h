// The chief's events (docs/json.md) as they are shown.
#pragma once

#include <string>

#include "tools/disttrain/follow/repeat_filter.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

// "2026-11-20 23:45:00.123 worker/1  text": local time, the task or "-", the sentence.
std::string event_line(const Json& event);

// The events of the list that `filter` hasn't seen yet.
Json take_new(RepeatFilter& filter, const Json& list);

}  // namespace disttrain::cli
