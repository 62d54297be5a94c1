#include "tools/disttrain/follow/repeat_filter.h"

#include <algorithm>
#include <utility>

namespace disttrain::cli {

std::size_t RepeatFilter::first_new(std::vector<std::string> things) {
  const auto is_seen = [this](const std::string& thing) {
    return std::find(newest_.begin(), newest_.end(), thing) != newest_.end();
  };
  std::size_t first = things.size();
  while (first > 0 && !is_seen(things[first - 1])) --first;
  for (std::size_t i = first; i < things.size(); ++i) {
    newest_.push_back(std::move(things[i]));
    if (newest_.size() > kMost) newest_.pop_front();
  }
  return first;
}

}  // namespace disttrain::cli
