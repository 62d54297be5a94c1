#include "common/bounded_cbor.h"

#include <cstdint>
#include <vector>

namespace disttrain {

namespace {

// The major types (RFC 8949, 3.1).
constexpr unsigned kBytes = 2;
constexpr unsigned kText = 3;
constexpr unsigned kArray = 4;
constexpr unsigned kMap = 5;
constexpr unsigned kTag = 6;

// Takes the first byte of a value and the number behind it, which is its length or its value. Returns false if the
// bytes end too early, or if the value has no length.
bool take_head(std::string_view& bytes, unsigned& type, std::uint64_t& number) {
  if (bytes.empty()) return false;
  const auto first = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  type = first >> 5;
  number = first & 31U;
  if (number < 24) return true;
  if (number > 27) return false;  // 28 to 30 are reserved; 31 means that there is no length
  const std::size_t size = std::size_t{1} << (number - 24);
  if (bytes.size() < size) return false;
  number = 0;
  for (const char byte : bytes.substr(0, size)) number = number << 8 | static_cast<unsigned char>(byte);
  bytes.remove_prefix(size);
  return true;
}

}  // namespace

bool is_bounded_cbor(std::string_view bytes, int most) {
  std::vector<std::uint64_t> open;  // for each array and map around this place: the values that it still lacks
  std::size_t values = 0;
  do {
    if (++values > kMaxCborValues) return false;
    unsigned type = 0;
    std::uint64_t number = 0;
    if (!take_head(bytes, type, number) || type == kTag) return false;
    if (!open.empty()) --open.back();
    if (type == kBytes || type == kText) {
      if (number > bytes.size()) return false;
      bytes.remove_prefix(number);
    } else if (type == kArray || type == kMap) {
      // Each element takes a byte or more.
      if (number > bytes.size() / (type == kMap ? 2 : 1) || open.size() == static_cast<std::size_t>(most)) return false;
      open.push_back(type == kMap ? 2 * number : number);
    }
    while (!open.empty() && open.back() == 0) open.pop_back();
  } while (!open.empty());
  return bytes.empty();
}

}  // namespace disttrain
