#include "common/format_duration.h"

#include <cstdint>

namespace disttrain {
namespace {

struct Unit {
  std::uint64_t least;  // in nanoseconds: shorter durations are written in a smaller unit
  std::uint64_t size;   // in nanoseconds
  const char* name;
};

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr Unit kUnits[] = {{7200 * kSecond, 3600 * kSecond, " h"},
                           {600 * kSecond, 60 * kSecond, " min"},
                           {kSecond, kSecond, " s"},
                           {1'000'000, 1'000'000, " ms"},
                           {1'000, 1'000, " us"}};

}  // namespace

std::string format_duration(Duration duration) {
  const bool is_negative = duration < Duration::zero();
  const auto count = static_cast<std::uint64_t>(duration.count());
  // negated as unsigned, because the lowest duration has no positive counterpart
  const std::uint64_t nanoseconds = is_negative ? 0 - count : count;
  for (const Unit& unit : kUnits) {
    if (nanoseconds < unit.least) continue;
    const std::uint64_t whole = nanoseconds / unit.size;
    std::string text = (is_negative ? "-" : "") + std::to_string(whole);
    if (const std::uint64_t hundredths = nanoseconds % unit.size * 100 / unit.size; whole < 100) {
      text += '.';
      text += static_cast<char>('0' + hundredths / 10);
      if (whole < 10) text += static_cast<char>('0' + hundredths % 10);
      text.resize(text.find_last_not_of('0') + 1);
      if (text.back() == '.') text.pop_back();
    }
    return text + unit.name;
  }
  return "0 s";
}

}  // namespace disttrain
