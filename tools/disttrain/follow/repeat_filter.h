// Drops entries that a client has seen before. After a reconnect, the chief sends all entries again that it remembers.
//
// Example, where each letter is an event:
// 1. The chief sends a b c. All are new.
// 2. The chief is restarted. Its journal held a and b, but c wasn't durable yet.
// 3. The client asks again and gets a b d. The newest of these that it has seen is b, so only d is new.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace disttrain::cli {

// Filters the entries of one source, which sends them in order.
class RepeatFilter {
 public:
  // Returns the index of the first new entry in `things`, which are the texts of entries. That is the entry after the
  // newest one that was seen before. From now on all of `things` count as seen.
  std::size_t first_new(std::vector<std::string> things);

 private:
  // How many of the newest entries the filter remembers. One entry wouldn't be enough, because a restarted chief may
  // have lost its last entries (see the example).
  static constexpr std::size_t kMost = 100;
  std::deque<std::string> newest_;
};

}  // namespace disttrain::cli
