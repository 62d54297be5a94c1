#include "input/tokens/charsmap.h"

#include "input/tokens/trie.h"

namespace disttrain::input {

namespace {

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return number;
}

// A unit of the double array has the offset to its children, and the byte by which its parent leads to it.
std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
std::uint32_t label_of(std::uint32_t unit) {
  return unit & ((1u << 31) | 0xFF);
}
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8 & 1) == 1;
}
std::uint32_t value_of(std::uint32_t unit) {
  return unit & ((1u << 31) - 1);
}

}  // namespace

Result<Charsmap> Charsmap::read(std::string_view table) {
  Charsmap charsmap;
  if (table.empty()) return charsmap;
  if (table.size() < 4 || number_at(table, 0) > table.size() - 4 || number_at(table, 0) % 4 != 0 ||
      number_at(table, 0) == 0)
    return fail(ErrorCode::kData, "its table of characters (precompiled_charsmap) is truncated: fetch the file again");
  const std::size_t trie_bytes = number_at(table, 0);
  for (std::size_t at = 4; at < 4 + trie_bytes; at += 4) charsmap.units_.push_back(number_at(table, at));
  charsmap.texts_ = table.substr(4 + trie_bytes);
  if (charsmap.texts_.empty() || charsmap.texts_.back() != '\0') charsmap.texts_ += '\0';
  return charsmap;
}

Charsmap::Match Charsmap::longest_prefix(std::string_view text) const {
  Match match;
  if (units_.empty()) return match;
  std::uint32_t at = offset_of(units_[0]);
  // A corrupt table may lead on without an end.
  text = text.substr(0, kMaxPieceBytes);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    // A corrupt table may lead out of the array.
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (at >= units_.size()) break;
    if (!has_leaf(unit)) continue;
    const std::uint32_t value = value_of(units_[at]);
    if (value < texts_.size()) match = {i + 1, std::string_view(texts_.c_str() + value)};
  }
  return match;
}

}  // namespace disttrain::input
