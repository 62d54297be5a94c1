// Parses JSON that came from outside: from a file, a trainer or another program. All such text goes through
// parse_bounded_json() or read_bounded_json(). nlohmann's parser itself takes any nesting and any number of values. A
// text of brackets alone then costs 70 times its size in memory, and functions that recurse into the value, such as
// dump(), overflow the stack. A value costs 16 bytes or more, so a text of "0,0,0" costs 8 times its size.
//
// A room that includes this file links nlohmann_json. All functions may be called in every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace disttrain {

// Objects and arrays inside of each other. The deepest texts of disttrain are manifests, with 6.
inline constexpr int kMaxJsonNesting = 8;

// The most values of a tree, counted by their commas and open brackets, unless the caller needs more.
inline constexpr std::size_t kMaxJsonValues = std::size_t{16} << 20;

// Whether the text has more open brackets at one place than `most_nesting`, or more than `most_values` commas and open
// brackets outside of strings. Reads the text up to that place. Of a text that isn't JSON it is true of the part before
// the first error.
bool exceeds_json_bounds(std::string_view text, int most_nesting, std::size_t most_values);

// Returns a discarded value (Json::is_discarded()) if the text isn't JSON, is nested deeper than `most_nesting` or has
// more than `most_values`. Never throws, except std::bad_alloc. The caller bounds the size of the text. The function
// takes no callback as Json::parse() does, because with a callback the library looks through an object again after each
// value in it, which takes quadratic time.
template <class Json = nlohmann::json>
Json parse_bounded_json(std::string_view text, int most_nesting = kMaxJsonNesting,
                        std::size_t most_values = kMaxJsonValues) {
  if (exceeds_json_bounds(text, most_nesting, most_values)) return Json(Json::value_t::discarded);
  try {
    return Json::parse(text, nullptr, false);
  } catch (const typename Json::exception&) {
    return Json(Json::value_t::discarded);
  }
}

// Hands the parts of the text to `reader` in their order, and builds no tree of values. Returns false if the text isn't
// JSON or is nested deeper than `most_nesting`, or as soon as a function of `reader` returns false. Throws what these
// functions throw.
template <class Json = nlohmann::json>
bool read_bounded_json(std::string_view text, nlohmann::json_sax<Json>& reader, int most_nesting = kMaxJsonNesting) {
  return !exceeds_json_bounds(text, most_nesting, SIZE_MAX) && Json::sax_parse(text, &reader);
}

}  // namespace disttrain
