#include "input/lines.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace disttrain::input {

namespace {

tl::unexpected<Error> too_long(const RecordBlock& block, std::uint64_t record, std::size_t begin) {
  return fail(ErrorCode::kData, place_of(block, record, begin) + ": a line of more than " +
                                    std::to_string(kMaxLineBytes) +
                                    " bytes, expected one record a line: is data.format right?");
}

}  // namespace

std::size_t byte_order_mark(const RecordBlock& block) {
  const bool has =
      block.offset == 0 && block.bytes.size() >= 3 && std::memcmp(block.bytes.data(), "\xEF\xBB\xBF", 3) == 0;
  return has ? 3 : 0;
}

Status check_begin(const RecordBlock& block) {
  if (block.offset > 0 || block.bytes.size() < 2) return {};
  const auto first = std::to_integer<unsigned>(block.bytes[0]);
  const auto second = std::to_integer<unsigned>(block.bytes[1]);
  const bool is_utf16 = (first == 0xFF && second == 0xFE) || (first == 0xFE && second == 0xFF);
  if (!is_utf16) return {};
  return fail(ErrorCode::kData, std::string(block.path) +
                                    ": begins as a text in UTF-16, expected UTF-8: convert it, "
                                    "for example by `iconv -f UTF-16 -t UTF-8`");
}

bool is_blank_line(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

Result<std::size_t> find_lines(const RecordBlock& block, std::vector<RecordPlace>& records) {
  records.clear();
  if (Status ok = check_begin(block); !ok) return tl::unexpected(std::move(ok.error()));
  const auto* const text = reinterpret_cast<const char*>(block.bytes.data());
  const std::size_t size = block.bytes.size();
  std::size_t at = byte_order_mark(block);
  while (at < size) {
    const auto* const found = static_cast<const char*>(std::memchr(text + at, '\n', size - at));
    const std::size_t end = found == nullptr ? size : static_cast<std::size_t>(found - text);
    if (end - at > kMaxLineBytes) return too_long(block, records.size(), at);
    if (found == nullptr && !block.is_last) break;
    const std::size_t bytes = end - at - (end > at && text[end - 1] == '\r' ? 1 : 0);
    if (!is_blank_line({text + at, bytes})) records.push_back({at, bytes});
    at = std::min(end + 1, size);
  }
  return at;
}

}  // namespace disttrain::input
