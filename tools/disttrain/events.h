// The chief's events (docs/json.md) as they are shown.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "tools/disttrain/json.h"

namespace disttrain::cli {

// "2026-11-20 23:45:00.123 worker/1  text": local time, the task or "-", the sentence.
std::string event_line(const Json& event);

// A new chief knows the events of the one before and tells all of them again.
class Seen {
 public:
  // The events of the list that come after the newest one that was seen; from now on they are seen too.
  Json take_new(const Json& list);

 private:
  // The newest, as text: the last few may have been told before they were durable, and be unknown to a new chief.
  static constexpr std::size_t kMost = 100;
  std::deque<std::string> newest_;
};

}  // namespace disttrain::cli
