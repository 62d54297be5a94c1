// Drops entries that a stream repeats after a reconnect: the chief then sends again all that it remembers.
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

// For one source, which sends its entries in order.
class RepeatFilter {
 public:
  // The index of the first new entry in `things`, each of which is an entry's whole text: the one after the newest that
  // was seen. From now on all of them count as seen.
  std::size_t first_new(std::vector<std::string> things);

 private:
  // Remembers so many of the newest: a restarted chief may not know the last few (see the example).
  static constexpr std::size_t kMost = 100;
  std::deque<std::string> newest_;
};

}  // namespace disttrain::cli
