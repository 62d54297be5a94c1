#include "input/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace disttrain::input {

namespace {

constexpr std::size_t kFastDigits = 9;  // so many digits fit into 32 bits

// from_chars gives the same error for numbers that are too large and for numbers that are too close to 0. This tells
// them apart.
bool is_tiny(std::string_view number) {
  double wide = 0.0;
  const auto answer = std::from_chars(number.data(), number.data() + number.size(), wide);
  if (answer.ec == std::errc()) return std::abs(wide) < 1.0;
  const std::size_t end = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, end);
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  std::int64_t power = first < point ? point - first - 1 : point - first;  // of 10, of the first digit
  if (end < number.size()) {
    std::string_view exponent = number.substr(end + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    std::int64_t shift = 0;
    const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), shift);
    if (read.ec != std::errc()) return exponent.starts_with('-');  // more than 64 bits
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 2;
    power += std::clamp(shift, -kMost, kMost);
  }
  return power < 0;
}

// T: float or double. `text` has no leading +.
template <typename T>
std::optional<T> real_in(std::string_view text) {
  const char* const end = text.data() + text.size();
  T value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) return is_tiny(text) ? std::optional(T{0}) : std::nullopt;
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The text behind a leading +, which from_chars doesn't take. "" isn't a number, so it stands for "+-1" too.
std::string_view without_plus(std::string_view text) {
  if (!text.starts_with('+')) return text;
  text.remove_prefix(1);
  return text.starts_with('-') ? std::string_view() : text;
}

}  // namespace

std::optional<float> float_in(std::string_view text) {
  text = without_plus(text);
  // Most numbers are short and whole. Converting an integer of 32 bits rounds as from_chars does.
  const bool is_negative = !text.empty() && text[0] == '-';
  const std::string_view digits = text.substr(is_negative ? 1 : 0);
  if (digits.empty()) return std::nullopt;
  if (digits.size() > kFastDigits) return real_in<float>(text);
  std::uint32_t value = 0;
  for (const char c : digits) {
    const auto digit = static_cast<std::uint32_t>(static_cast<unsigned char>(c)) - '0';
    if (digit > 9) return real_in<float>(text);
    value = value * 10 + digit;
  }
  const auto number = static_cast<float>(value);
  return is_negative ? -number : number;
}

std::optional<float> float_or_infinity_in(std::string_view text) {
  if (const std::optional<float> number = float_in(text)) return number;
  text = without_plus(text);
  float value = 0.0F;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size() || text.empty() || std::isnan(value)) return std::nullopt;
  // The number is too large, or from_chars has read a word.
  return std::copysign(std::numeric_limits<float>::infinity(), text.front() == '-' ? -1.0F : 1.0F);
}

std::optional<double> double_in(std::string_view text) {
  return real_in<double>(without_plus(text));
}

std::optional<std::int64_t> integer_in(std::string_view text) {
  text = without_plus(text);
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace disttrain::input
