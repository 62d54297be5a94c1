// The memory that words take while a first pass over the files finds them. Each file being read has words of its own,
// and those of a column may differ in each record, so they have a bound.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace disttrain::input {

// The passes over all files share it. Any thread may use it.
class WordRoom {
 public:
  explicit WordRoom(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  std::uint64_t most_bytes() const { return most_bytes_; }

  // Returns whether there was room for the word.
  [[nodiscard]] bool add(std::string_view word) { return (used_bytes_ += bytes_of(word)) <= most_bytes_; }
  void drop(std::string_view word) { used_bytes_ -= bytes_of(word); }

 private:
  // With what std::unordered_map and the allocator need for a word.
  static std::uint64_t bytes_of(std::string_view word) { return word.size() + 80; }

  const std::uint64_t most_bytes_;
  std::atomic<std::uint64_t> used_bytes_ = 0;
};

}  // namespace disttrain::input
