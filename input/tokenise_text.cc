#include "input/tokenise_text.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "input/tokens/unicode.h"

namespace disttrain::input {

namespace {

std::uint8_t text_byte(std::span<const std::byte> text, std::size_t at) {
  return std::to_integer<std::uint8_t>(text[at]);
}

bool is_space(std::uint8_t byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

}  // namespace

std::size_t end_of_piece(std::span<const std::byte> text) {
  if (text.size() <= kTextPieceBytes) return text.size();
  const std::size_t most = std::min(text.size(), kMaxTextPieceBytes);
  for (std::size_t at = kTextPieceBytes; at + 1 < most; ++at)
    if (text_byte(text, at) == '\n' && !is_space(text_byte(text, at - 1)) && !is_space(text_byte(text, at + 1)))
      return at + 1;
  if (most == text.size()) return most;
  // Not inside a character of UTF-8, which has at most 4 bytes.
  std::size_t end = most;
  while (end > most - 3 && (text_byte(text, end) & 0xC0) == 0x80) --end;
  return end;
}

Result<std::vector<std::int32_t>> tokenise_text(const Tokenizer& tokenizer, std::span<const std::byte> text,
                                                const std::function<Status(std::uint64_t tokens)>& may_go_on) {
  std::vector<std::int32_t> ids = tokenizer.before();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t old = ids.size();
    const std::span<const std::byte> piece = text.subspan(at, end_of_piece(text.subspan(at)));
    const std::string_view characters(reinterpret_cast<const char*>(piece.data()), piece.size());
    if (const auto invalid = find_invalid(characters))
      return fail(ErrorCode::kData,
                  "isn't UTF-8 at its byte " + std::to_string(at + *invalid) + ": convert it to UTF-8");
    if (Status ok = tokenizer.encode(characters, ids); !ok) return tl::unexpected(std::move(ok.error()));
    if (Status ok = may_go_on(ids.size() - old); !ok) return tl::unexpected(std::move(ok.error()));
    at += piece.size();
  }
  ids.insert(ids.end(), tokenizer.after().begin(), tokenizer.after().end());
  return ids;
}

}  // namespace disttrain::input
