// Numbers in the texts of data files. All decoders and columns read them by these functions. They take the whole text,
// without blanks around it; a leading + is allowed. They don't depend on the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace disttrain::input {

// A float64 of at most this size that is whole stands for one whole number only.
inline constexpr double kLargestWhole = 9007199254740991.0;  // 2^53 - 1

// Returns nothing if the text isn't one finite number that fits into a float. Numbers that are too close to 0 become 0.
std::optional<float> float_in(std::string_view text);

// The same, but a number beyond the range of a float is an infinity, and so are the words for one, such as "-inf".
std::optional<float> float_or_infinity_in(std::string_view text);

// As float_in(), for a number that fits into a double.
std::optional<double> double_in(std::string_view text);

// Returns nothing if the text isn't one whole number that fits into 64 bits. 3.0 and 1e3 aren't whole numbers here.
std::optional<std::int64_t> integer_in(std::string_view text);

}  // namespace disttrain::input
