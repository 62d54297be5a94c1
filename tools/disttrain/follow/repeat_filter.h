// What a stream has told already. The chief tells what it remembers anew to who asks again, and a new chief what it has
// from the one before.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace disttrain::cli {

// Of one source that tells things in order.
class RepeatFilter {
 public:
  // Where in `things` (each as text, all of its keys) begin those that come after the newest one that was seen. From
  // now on they are seen too.
  std::size_t first_new(std::vector<std::string> things);

 private:
  // The newest: the last few may have been told before they were durable, and be unknown to a new chief.
  static constexpr std::size_t kMost = 100;
  std::deque<std::string> newest_;
};

}  // namespace disttrain::cli
