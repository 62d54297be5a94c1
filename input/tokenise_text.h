// Makes the tokens of a whole text file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/result.h"
#include "input/tokens/tokenizer.h"

namespace disttrain::input {

// A text is tokenised in pieces. A piece ends at the first line end after so many bytes, between two characters that
// aren't white space.
inline constexpr std::size_t kTextPieceBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxTextPieceBytes = 4 * kTextPieceBytes;  // a piece without such a line end ends here

// Where the first piece of the text ends.
std::size_t end_of_piece(std::span<const std::byte> text);

// The ids of the text's tokens, with the tokens that the tokenizer sets around a text. After each piece calls
// may_go_on() with the number of its tokens, and fails with the error that this returns. Errors, kData: the text isn't
// UTF-8.
Result<std::vector<std::int32_t>> tokenise_text(const Tokenizer& tokenizer, std::span<const std::byte> text,
                                                const std::function<Status(std::uint64_t tokens)>& may_go_on);

}  // namespace disttrain::input
