#include "input/tokens/tokenizer.h"

#include <utility>

#include "input/tokens/unicode.h"

namespace disttrain::input {

ByteTokens ByteTokens::of(const Vocabulary& vocabulary) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  ByteTokens tokens;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string name = {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
    const auto found = vocabulary.find(name);
    if (found != vocabulary.end()) tokens.ids_[byte] = found->second;
  }
  return tokens;
}

bool ByteTokens::has_all(std::string_view bytes) const {
  for (const char byte : bytes)
    if (id(byte) < 0) return false;
  return true;
}

void ByteTokens::add(std::string_view bytes, std::vector<std::int32_t>& ids) const {
  for (const char byte : bytes) ids.push_back(id(byte));
}

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}

Status Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  if (text.size() > kMaxTextBytes)
    return fail(ErrorCode::kData, "the text has " + std::to_string(text.size()) + " bytes, expected at most " +
                                      std::to_string(kMaxTextBytes) + ": divide it");
  if (const auto at = find_invalid(text))
    return fail(ErrorCode::kData, "the text isn't UTF-8 at its byte " + std::to_string(*at) + ": convert it to UTF-8");
  TextBudget budget(text.size());
  for (const AddedTokens::Part& part : parts_.added.find(text)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    Word changed{std::string(part.text), part.text.data() == text.data()};
    if (parts_.normalise)
      if (Status ok = parts_.normalise(changed, budget); !ok) return ok;
    budget.end_part();
    for (const AddedTokens::Part& piece : parts_.added_normalised.find(changed.text)) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
        continue;
      }
      const bool is_first = changed.is_first && piece.text.data() == changed.text.data();
      const Status ok = encode_part({std::string(piece.text), is_first}, budget, ids);
      if (!ok) return ok;
    }
  }
  return {};
}

Status Tokenizer::encode_part(Word part, TextBudget& budget, std::vector<std::int32_t>& ids) const {
  if (!parts_.cut) {
    parts_.model->encode(part.text, ids);
    return {};
  }
  std::vector<Word> words;
  words.push_back(std::move(part));
  if (Status ok = parts_.cut(words, budget); !ok) return ok;
  budget.end_part();
  for (const Word& word : words) parts_.model->encode(word.text, ids);
  return {};
}

}  // namespace disttrain::input
