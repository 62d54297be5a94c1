// Parses CBOR (RFC 8949) that came from outside: from a file or another process. All such bytes go through
// parse_bounded_cbor(). nlohmann's parser itself recurses into arrays, maps and strings in chunks, so that a few
// kilobytes overflow the stack, and it throws if an array says that it has more elements than memory could hold.
//
// A room that includes this file links nlohmann_json. All functions may be called in every thread.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace disttrain {

// Arrays and maps inside of each other. The deepest value of disttrain is the file columns.cbor, with 4.
inline constexpr int kMaxCborNesting = 8;
// Texts, numbers, arrays, maps and keys in all. columns.cbor has a value for each word, and its 8 MiB
// (kMaxKeptColumnsBytes) have room for this many words of 3 bytes.
inline constexpr std::size_t kMaxCborValues = std::size_t{2} << 20;

// Whether the bytes are one value whose arrays and maps nest at most `most` deep, whose lengths fit the bytes that
// follow them, and which has at most kMaxCborValues values. False also of tags and of values without a length
// ("indefinite"), which disttrain doesn't write. Works in one pass without recursion, on any bytes. True says nothing
// about the values themselves: a text may not be UTF-8.
bool is_bounded_cbor(std::string_view bytes, int most);

// Returns a discarded value (is_discarded()) if the bytes aren't CBOR, or if is_bounded_cbor() refuses them. Never
// throws, except std::bad_alloc. The caller bounds the number of bytes. While it is parsed, a value takes up to 176
// bytes besides its text, so that kMaxCborValues of them take 370 MB.
inline nlohmann::json parse_bounded_cbor(std::string_view bytes) {
  if (!is_bounded_cbor(bytes, kMaxCborNesting)) return nlohmann::json(nlohmann::json::value_t::discarded);
  try {
    return nlohmann::json::from_cbor(bytes, true, false);
  } catch (const nlohmann::json::exception&) {
    return nlohmann::json(nlohmann::json::value_t::discarded);
  }
}

}  // namespace disttrain
