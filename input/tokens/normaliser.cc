#include "input/tokens/normaliser.h"

#include <utility>

namespace disttrain::input {

namespace {

constexpr std::string_view kEscapedBlank = "\u2581";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string cleaned(std::string_view text) {
  std::string to;
  for (std::size_t at = 0; at < text.size(); at += character_bytes(text, at)) {
    const CodePoint c = character_at(text, at);
    const bool is_space = c == '\t' || c == '\n' || c == '\r' || is_whitespace(c);
    const bool is_control = c == 0 || c == 0xFFFD || (is_other(c) && c != '\t' && c != '\n' && c != '\r');
    if (is_control) continue;
    if (is_space)
      to += ' ';
    else
      append(c, to);
  }
  return to;
}

std::string with_chinese_apart(std::string_view text) {
  std::string to;
  for (std::size_t at = 0; at < text.size(); at += character_bytes(text, at)) {
    const CodePoint c = character_at(text, at);
    if (is_chinese(c)) to += ' ';
    append(c, to);
    if (is_chinese(c)) to += ' ';
  }
  return to;
}

Status change_form(std::string& text, UnicodeForm form) {
  std::optional<std::string> changed = normalised(text, form);
  if (!changed) return fail(ErrorCode::kData, "the text can't be normalised: it is too long");
  text = std::move(*changed);
  return {};
}

class SentencePieceNormaliser {
 public:
  explicit SentencePieceNormaliser(SentencePieceNormalising how) : how_(std::move(how)) {}

  Result<std::string> apply(std::string_view text, TextBudget& budget) const {
    if (how_.removes_extra_whitespaces) {
      while (!text.empty()) {
        const Charsmap::Match next = next_of(text);
        if (next.to != " ") break;
        text.remove_prefix(next.bytes);
      }
    }
    if (text.empty()) return std::string();
    std::string to;
    to.reserve(text.size() * 3);
    if (how_.adds_dummy_prefix) to += blank();
    bool is_after_blank = how_.removes_extra_whitespaces;
    while (!text.empty()) {
      const Charsmap::Match next = next_of(text);
      std::string_view piece = next.to;
      while (is_after_blank && !piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
      for (const char c : piece) {
        if (c == ' ')
          to += blank();
        else
          to += c;
      }
      if (!piece.empty()) is_after_blank = how_.removes_extra_whitespaces && piece.back() == ' ';
      text.remove_prefix(next.bytes);
      if (Status ok = budget.check(to.size()); !ok) return tl::unexpected(std::move(ok.error()));
    }
    if (how_.removes_extra_whitespaces)
      while (ends_with(to, blank())) to.resize(to.size() - blank().size());
    return to;
  }

 private:
  std::string_view blank() const { return how_.escapes_whitespaces ? kEscapedBlank : std::string_view(" "); }

  // What becomes of the first characters.
  Charsmap::Match next_of(std::string_view text) const {
    const Trie::Match kept = how_.kept.longest_prefix(text);
    if (kept.bytes > 0) return {kept.bytes, text.substr(0, kept.bytes)};
    const Charsmap::Match changed = how_.charsmap.longest_prefix(text);
    if (changed.bytes > 0) return changed;
    const std::size_t bytes = character_bytes(text, 0);
    return {bytes, text.substr(0, bytes)};
  }

  const SentencePieceNormalising how_;
};

}  // namespace

Normaliser in_sequence(std::vector<Normaliser> steps) {
  return [steps = std::move(steps)](Word& word, TextBudget& budget) -> Status {
    for (const Normaliser& step : steps) {
      if (Status ok = step(word, budget); !ok) return ok;
      if (Status ok = budget.check(word.text.size()); !ok) return ok;
    }
    return {};
  };
}

Normaliser to_form(UnicodeForm form) {
  return [form](Word& word, TextBudget&) { return change_form(word.text, form); };
}

Normaliser bert_normaliser(BertCleaning cleaning) {
  return [cleaning](Word& word, TextBudget&) -> Status {
    std::string& text = word.text;
    if (cleaning.cleans) text = cleaned(text);
    if (cleaning.separates_chinese) text = with_chinese_apart(text);
    if (cleaning.strips_accents) {
      if (Status ok = change_form(text, UnicodeForm::kNfd); !ok) return ok;
      text = filtered(text, [](CodePoint c) { return !is_nonspacing_mark(c); });
    }
    if (cleaning.lowercases) text = lowercase(text);
    return {};
  };
}

Normaliser replacer(std::shared_ptr<const Regex> from, std::string to) {
  return [from = std::move(from), to = std::move(to)](Word& word, TextBudget& budget) -> Status {
    std::string& text = word.text;
    const Result<std::vector<TextRange>> found = from->find_all(text);
    if (!found) return tl::unexpected(found.error());
    std::string changed;
    std::size_t at = 0;
    for (const TextRange& match : *found) {
      if (match.begin == 0 && to.empty()) word.is_first = false;
      changed.append(text, at, match.begin - at) += to;
      at = match.end;
      if (Status ok = budget.check(changed.size()); !ok) return ok;
    }
    text = changed.append(text, at);
    return {};
  };
}

Normaliser replacer(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](Word& word, TextBudget& budget) -> Status {
    std::string& text = word.text;
    std::string changed;
    std::size_t at = 0;
    for (std::size_t found = text.find(from); found != std::string::npos; found = text.find(from, at)) {
      if (found == 0 && to.empty()) word.is_first = false;
      changed.append(text, at, found - at) += to;
      at = found + from.size();
      if (Status ok = budget.check(changed.size()); !ok) return ok;
    }
    text = changed.append(text, at);
    return {};
  };
}

Normaliser sentencepiece_normaliser(SentencePieceNormalising how) {
  const auto normaliser = std::make_shared<const SentencePieceNormaliser>(std::move(how));
  return [normaliser](Word& word, TextBudget& budget) -> Status {
    Result<std::string> changed = normaliser->apply(word.text, budget);
    if (!changed) return tl::unexpected(std::move(changed.error()));
    word.text = std::move(*changed);
    return {};
  };
}

}  // namespace disttrain::input
