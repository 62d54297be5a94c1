#include <utility>

#include "input/tokens/json_parts.h"

namespace disttrain::input {

namespace {

Result<Normaliser> read_sequence(const Json& json, int depth) {
  std::vector<Normaliser> steps;
  for (const Json& part : json.at("normalizers")) {
    Result<Normaliser> step = read_normaliser(part, depth + 1);
    if (!step) return step;
    steps.push_back(std::move(*step));
  }
  return in_sequence(std::move(steps));
}

Result<Normaliser> read_replace(const Json& json) {
  const Json& pattern = json.at("pattern");
  const std::string to = json.at("content");
  if (pattern.contains("String")) {
    const std::string from = pattern.at("String");
    if (from.empty()) return unknown_part("normalizer", "Replace with an empty pattern");
    return replacer(from, to);
  }
  Result<std::shared_ptr<const Regex>> regex = Regex::compile(pattern.at("Regex").get<std::string>());
  if (!regex) return tl::unexpected(regex.error());
  return replacer(std::move(*regex), to);
}

Normaliser stripper(bool left, bool right) {
  return [left, right](Word& word, TextBudget&) -> Status {
    const std::string& text = word.text;
    std::size_t begin = 0;
    while (left && begin < text.size() && is_whitespace(character_at(text, begin)))
      begin += character_bytes(text, begin);
    std::size_t end = begin;  // behind the last character that isn't white space
    for (std::size_t at = begin; at < text.size();) {
      const bool is_blank = is_whitespace(character_at(text, at));
      at += character_bytes(text, at);
      if (!is_blank) end = at;
    }
    if (begin > 0) word.is_first = false;
    word.text = text.substr(begin, (right ? end : text.size()) - begin);
    return {};
  };
}

}  // namespace

Result<Normaliser> read_normaliser(const Json& json, int depth) {
  if (depth > kMaxNesting) return fail(ErrorCode::kData, "normalizer: too many parts inside each other");
  const std::string type = json.at("type");
  if (type == "Sequence") return read_sequence(json, depth);
  if (type == "NFC") return to_form(UnicodeForm::kNfc);
  if (type == "NFD") return to_form(UnicodeForm::kNfd);
  if (type == "NFKC") return to_form(UnicodeForm::kNfkc);
  if (type == "NFKD") return to_form(UnicodeForm::kNfkd);
  if (type == "Replace") return read_replace(json);
  if (type == "Strip") return stripper(flag(json, "strip_left", true), flag(json, "strip_right", true));
  if (type == "BertNormalizer") {
    const bool lowercases = flag(json, "lowercase", true);
    return bert_normaliser({.cleans = flag(json, "clean_text", true),
                            .separates_chinese = flag(json, "handle_chinese_chars", true),
                            .strips_accents = flag(json, "strip_accents", lowercases),
                            .lowercases = lowercases});
  }
  if (type == "Lowercase")
    return Normaliser([](Word& word, TextBudget&) -> Status {
      word.text = lowercase(word.text);
      return {};
    });
  if (type == "StripAccents")
    return Normaliser([](Word& word, TextBudget&) -> Status {
      word.text = filtered(word.text, [](CodePoint c) { return !is_mark(c); });
      return {};
    });
  if (type == "Prepend")
    return Normaliser([prefix = json.at("prepend").get<std::string>()](Word& word, TextBudget&) -> Status {
      if (!word.text.empty()) word.text.insert(0, prefix);
      return {};
    });
  return unknown_part(
      "normalizer", type,
      type == "Precompiled" ? "take the tokenizer's SentencePiece model (.model) instead" : "take another tokenizer");
}

}  // namespace disttrain::input
