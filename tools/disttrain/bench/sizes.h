// Sizes of messages, such as "4K" and "16M".
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain::cli {

inline constexpr std::uint64_t kLeastSize = 4;  // a float32
inline constexpr std::uint64_t kMostSize = std::uint64_t{1} << 30;

// Reads a list such as "4K,1M,16M". K is 1,024 bytes, M is 1,024 K, G is 1,024 M. kUsage: a size isn't a multiple of 4
// bytes from kLeastSize to kMostSize.
inline Result<std::vector<std::uint64_t>> parse_sizes(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    std::uint64_t number = 0;
    const auto [rest, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    const std::string unit(rest, word.data() + word.size());
    const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
    const bool is_number = problem == std::errc() && shift >= 0 && number <= (kMostSize >> shift);
    const std::uint64_t bytes = is_number ? number << shift : 0;
    if (bytes < kLeastSize || bytes % 4 != 0)
      return fail(ErrorCode::kUsage,
                  "'" + word + "' isn't a size; expected a multiple of 4 bytes up to 1G, such as 4K");
    sizes.push_back(bytes);
    begin = end + 1;
  }
  return sizes;
}

// "4K", "1M" or "12".
inline std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, name] : {std::pair{30, "G"}, {20, "M"}, {10, "K"}})
    if (bytes % (std::uint64_t{1} << unit) == 0) return std::to_string(bytes >> unit) + name;
  return std::to_string(bytes);
}

}  // namespace disttrain::cli
