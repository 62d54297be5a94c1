#include "input/tokens/pre_tokeniser.h"

#include <array>
#include <utility>

namespace disttrain::input {

namespace {

// GPT-2's table (encoder.py, bytes_to_unicode): printable bytes of Latin-1 stay, the others become U+0100 and
// following.
std::array<std::string, 256> characters_of_bytes() {
  std::array<std::string, 256> characters;
  CodePoint next = 0x100;
  for (CodePoint byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    append(is_printable ? byte : next++, characters[static_cast<std::size_t>(byte)]);
  }
  return characters;
}

void add_rest(std::size_t begin, std::size_t end, bool is_match, std::vector<SplitPart>& parts) {
  if (begin < end) parts.push_back({{begin, end}, is_match});
}

// The ranges of the words that the parts make.
std::vector<TextRange> ranges_of(const std::vector<SplitPart>& parts, SplitBehaviour behaviour) {
  std::vector<TextRange> ranges;
  bool was_match = false;
  for (const SplitPart& part : parts) {
    const bool is_first = ranges.empty();
    switch (behaviour) {
      case SplitBehaviour::kRemoved:
        if (!part.is_match) ranges.push_back(part.range);
        break;
      case SplitBehaviour::kIsolated:
        ranges.push_back(part.range);
        break;
      case SplitBehaviour::kContiguous:
        if (!is_first && part.is_match == was_match)
          ranges.back().end = part.range.end;
        else
          ranges.push_back(part.range);
        break;
      case SplitBehaviour::kMergedWithPrevious:
        if (!is_first && part.is_match && !was_match)
          ranges.back().end = part.range.end;
        else
          ranges.push_back(part.range);
        break;
      case SplitBehaviour::kMergedWithNext:
        if (!is_first && !part.is_match && was_match)
          ranges.back().end = part.range.end;
        else
          ranges.push_back(part.range);
        break;
    }
    was_match = part.is_match;
  }
  return ranges;
}

std::size_t bytes_in(const std::vector<Word>& words) {
  std::size_t bytes = 0;
  for (const Word& word : words) bytes += word.text.size();
  return bytes;
}

// Splits each word.
template <typename Split>
Status split_each(std::vector<Word>& words, const Split& split) {
  std::vector<Word> to;
  to.reserve(words.size());
  for (const Word& word : words) {
    const Result<std::vector<TextRange>> ranges = split(word.text);
    if (!ranges) return tl::unexpected(ranges.error());
    for (const TextRange& range : *ranges)
      if (range.begin < range.end)
        to.push_back({word.text.substr(range.begin, range.end - range.begin), word.is_first && range.begin == 0});
  }
  words = std::move(to);
  return {};
}

}  // namespace

PreTokeniser in_sequence(std::vector<PreTokeniser> steps) {
  return [steps = std::move(steps)](std::vector<Word>& words, TextBudget& budget) -> Status {
    for (const PreTokeniser& step : steps) {
      if (Status ok = step(words, budget); !ok) return ok;
      if (Status ok = budget.check(bytes_in(words)); !ok) return ok;
    }
    return {};
  };
}

FindParts matches_of(std::shared_ptr<const Regex> regex, bool inverts) {
  return [regex = std::move(regex), inverts](std::string_view text) -> Result<std::vector<SplitPart>> {
    const Result<std::vector<TextRange>> found = regex->find_all(text);
    if (!found) return tl::unexpected(found.error());
    std::vector<SplitPart> parts;
    std::size_t at = 0;
    for (const TextRange& match : *found) {
      add_rest(at, match.begin, inverts, parts);
      add_rest(match.begin, match.end, !inverts, parts);
      at = match.end;
    }
    add_rest(at, text.size(), inverts, parts);
    return parts;
  };
}

FindParts matches_of(std::string pattern, bool inverts) {
  return [pattern = std::move(pattern), inverts](std::string_view text) -> Result<std::vector<SplitPart>> {
    std::vector<SplitPart> parts;
    std::size_t at = 0;
    for (std::size_t found = text.find(pattern); found != std::string_view::npos; found = text.find(pattern, at)) {
      add_rest(at, found, inverts, parts);
      at = found + pattern.size();
      add_rest(found, at, !inverts, parts);
    }
    add_rest(at, text.size(), inverts, parts);
    return parts;
  };
}

FindParts characters_that(bool (*is_match)(CodePoint)) {
  return [is_match](std::string_view text) -> Result<std::vector<SplitPart>> {
    std::vector<SplitPart> parts;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const bool matches = is_match(character_at(text, at));
      const std::size_t end = at + character_bytes(text, at);
      if (matches) {
        add_rest(begin, at, false, parts);
        add_rest(at, end, true, parts);
        begin = end;
      }
      at = end;
    }
    add_rest(begin, text.size(), false, parts);
    return parts;
  };
}

PreTokeniser splitter(FindParts find, SplitBehaviour behaviour) {
  return [find = std::move(find), behaviour](std::vector<Word>& words, TextBudget&) {
    return split_each(words, [&](std::string_view text) -> Result<std::vector<TextRange>> {
      const Result<std::vector<SplitPart>> parts = find(text);
      if (!parts) return tl::unexpected(parts.error());
      return ranges_of(*parts, behaviour);
    });
  };
}

PreTokeniser byte_level(bool adds_blank_before) {
  return [adds_blank_before](std::vector<Word>& words, TextBudget&) -> Status {
    static const std::array<std::string, 256> characters = characters_of_bytes();
    for (Word& word : words) {
      std::string to;
      to.reserve(word.text.size() * 2);
      if (adds_blank_before && word.text.front() != ' ') to += characters[' '];
      for (const char byte : word.text) to += characters[static_cast<unsigned char>(byte)];
      word.text = std::move(to);
    }
    return {};
  };
}

PreTokeniser metaspace(std::string replacement, PrefixScheme scheme, bool splits) {
  return
      [replacement = std::move(replacement), scheme, splits](std::vector<Word>& words, TextBudget& budget) -> Status {
        std::size_t before = 0;  // bytes of the words before this one
        for (Word& word : words) {
          std::string to;
          for (const char c : word.text) {
            if (c == ' ')
              to += replacement;
            else
              to += c;
            if (Status ok = budget.check(before + to.size()); !ok) return ok;
          }
          const bool may_prefix = scheme == PrefixScheme::kAlways || (scheme == PrefixScheme::kFirst && word.is_first);
          word.text = may_prefix && !to.starts_with(replacement) ? replacement + to : std::move(to);
          before += word.text.size();
          if (Status ok = budget.check(before); !ok) return ok;
        }
        if (!splits) return {};
        return splitter(matches_of(replacement, false), SplitBehaviour::kMergedWithNext)(words, budget);
      };
}

}  // namespace disttrain::input
