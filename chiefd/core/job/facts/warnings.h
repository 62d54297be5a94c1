// The newest warnings about a job, for its status. `disttrain events` shows more.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace disttrain::chiefd {

class Warnings {
 public:
  // A job that runs for weeks may lose many workers, so only this many warnings are kept.
  static constexpr std::size_t kMost = 100;

  void add(std::string text) {
    if (all_.size() >= kMost) all_.erase(all_.begin());
    all_.push_back(std::move(text));
  }
  // Oldest first.
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

}  // namespace disttrain::chiefd
