#include <utility>

#include "input/tokens/json_parts.h"

namespace disttrain::input {

namespace {

Result<PreTokeniser> read_steps(const Json& json, int depth) {
  std::vector<PreTokeniser> steps;
  for (const Json& part : json.at("pretokenizers")) {
    Result<PreTokeniser> step = read_pre_tokeniser(part, depth + 1);
    if (!step) return step;
    steps.push_back(std::move(*step));
  }
  return in_sequence(std::move(steps));
}

Result<SplitBehaviour> read_behaviour(const Json& json) {
  const std::string name = json;
  if (name == "Removed") return SplitBehaviour::kRemoved;
  if (name == "Isolated") return SplitBehaviour::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehaviour::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehaviour::kMergedWithNext;
  if (name == "Contiguous") return SplitBehaviour::kContiguous;
  return unknown_part("behavior", name);
}

Result<PreTokeniser> words_that_match(const char* expression, SplitBehaviour behaviour, bool inverts) {
  Result<std::shared_ptr<const Regex>> regex = Regex::compile(expression);
  if (!regex) return tl::unexpected(regex.error());
  return splitter(matches_of(std::move(*regex), inverts), behaviour);
}

Result<PreTokeniser> read_split(const Json& json) {
  const Json& pattern = json.at("pattern");
  const bool inverts = flag(json, "invert", false);
  const Result<SplitBehaviour> behaviour = read_behaviour(json.at("behavior"));
  if (!behaviour) return tl::unexpected(behaviour.error());
  if (!pattern.contains("String"))
    return words_that_match(pattern.at("Regex").get<std::string>().c_str(), *behaviour, inverts);
  const std::string text = pattern.at("String");
  if (text.empty()) return unknown_part("pre_tokenizer", "Split with an empty pattern");
  return splitter(matches_of(text, inverts), *behaviour);
}

Result<PreTokeniser> read_byte_level(const Json& json) {
  const bool adds_blank = flag(json, "add_prefix_space", true);
  if (!flag(json, "use_regex", true)) return byte_level(adds_blank);
  Result<PreTokeniser> words = words_that_match(kGpt2Words, SplitBehaviour::kIsolated, false);
  if (!words) return words;
  std::vector<PreTokeniser> steps;
  if (adds_blank)
    steps.push_back([](std::vector<Word>& all, TextBudget&) -> Status {
      for (Word& word : all)
        if (word.text.front() != ' ') word.text.insert(0, 1, ' ');
      return {};
    });
  steps.push_back(std::move(*words));
  steps.push_back(byte_level(false));
  return in_sequence(std::move(steps));
}

Result<PreTokeniser> read_metaspace(const Json& json) {
  const std::string replacement = json.at("replacement");
  if (replacement.empty()) return unknown_part("pre_tokenizer", "Metaspace without a replacement");
  // Older files have add_prefix_space instead of prepend_scheme.
  const std::string scheme = has(json, "prepend_scheme") ? json.at("prepend_scheme").get<std::string>()
                                                         : (flag(json, "add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") return unknown_part("prepend_scheme", scheme);
  return metaspace(replacement,
                   scheme == "always"  ? PrefixScheme::kAlways
                   : scheme == "first" ? PrefixScheme::kFirst
                                       : PrefixScheme::kNever,
                   flag(json, "split", true));
}

}  // namespace

Result<PreTokeniser> read_pre_tokeniser(const Json& json, int depth) {
  if (depth > kMaxNesting) return fail(ErrorCode::kData, "pre_tokenizer: too many parts inside each other");
  const std::string type = json.at("type");
  if (type == "Sequence") return read_steps(json, depth);
  if (type == "ByteLevel") return read_byte_level(json);
  if (type == "Split") return read_split(json);
  if (type == "Metaspace") return read_metaspace(json);
  if (type == "WhitespaceSplit") return splitter(characters_that(is_whitespace), SplitBehaviour::kRemoved);
  if (type == "Whitespace")
    return words_that_match(
        R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d\s]+)",
        SplitBehaviour::kRemoved, true);
  if (type == "BertPreTokenizer")
    return in_sequence({splitter(characters_that(is_whitespace), SplitBehaviour::kRemoved),
                        splitter(characters_that(is_punctuation), SplitBehaviour::kIsolated)});
  if (type == "Digits")
    return splitter(characters_that(is_numeric),
                    flag(json, "individual_digits", false) ? SplitBehaviour::kIsolated : SplitBehaviour::kContiguous);
  if (type == "Punctuation") {
    Result<SplitBehaviour> behaviour = SplitBehaviour::kIsolated;
    if (has(json, "behavior")) behaviour = read_behaviour(json.at("behavior"));
    if (!behaviour) return tl::unexpected(behaviour.error());
    return splitter(characters_that(is_punctuation), *behaviour);
  }
  return unknown_part("pre_tokenizer", type);
}

}  // namespace disttrain::input
