// Cuts a text into words. The model cuts each word by itself, so no piece reaches over two words.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/tokens/regex.h"
#include "input/tokens/unicode.h"
#include "input/tokens/word.h"

namespace disttrain::input {

// Replaces the words by other ones. Any thread may call it. Errors, kData.
using PreTokeniser = std::function<Status(std::vector<Word>& words, TextBudget& budget)>;

PreTokeniser in_sequence(std::vector<PreTokeniser> steps);

// What becomes of the parts of a text that match.
enum class SplitBehaviour : std::uint8_t { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// A part of a text, and whether it is what the splitter looks for.
struct SplitPart {
  TextRange range;
  bool is_match = false;
};
// Returns parts that cover the text.
using FindParts = std::function<Result<std::vector<SplitPart>>(std::string_view text)>;
FindParts matches_of(std::shared_ptr<const Regex> regex, bool inverts);
FindParts matches_of(std::string text, bool inverts);
// Each character is a part.
FindParts characters_that(bool (*is_match)(CodePoint));
PreTokeniser splitter(FindParts find, SplitBehaviour behaviour);

// Writes each byte as one printable character, as GPT-2 does.
PreTokeniser byte_level(bool adds_blank_before);

enum class PrefixScheme : std::uint8_t { kAlways, kFirst, kNever };
// Replaces blanks by `replacement`, and sets one before a word.
PreTokeniser metaspace(std::string replacement, PrefixScheme scheme, bool splits);

// GPT-2's expression for words.
inline constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace disttrain::input
