// Changes a text before it is cut into words: for example to small letters, or to one of Unicode's normal forms.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "input/tokens/charsmap.h"
#include "input/tokens/regex.h"
#include "input/tokens/trie.h"
#include "input/tokens/unicode.h"
#include "input/tokens/word.h"

namespace disttrain::input {

// Changes a word, which is valid UTF-8 before and after it. If it drops the word's begin, the word isn't the first one
// any more. Any thread may call it. Errors, kData.
using Normaliser = std::function<Status(Word& word, TextBudget& budget)>;

Normaliser in_sequence(std::vector<Normaliser> steps);
Normaliser to_form(UnicodeForm form);

// What BERT does with a text, in this order.
struct BertCleaning {
  bool cleans = true;             // drops control characters; white space becomes blanks
  bool separates_chinese = true;  // sets blanks around each Chinese character
  bool strips_accents = true;
  bool lowercases = true;
};
Normaliser bert_normaliser(BertCleaning cleaning);

// Replaces each match of the expression, or each occurrence of `from`, by `to`.
Normaliser replacer(std::shared_ptr<const Regex> from, std::string to);
Normaliser replacer(std::string from, std::string to);

// What a SentencePiece model says about its texts.
struct SentencePieceNormalising {
  Charsmap charsmap;
  Trie kept;  // texts that aren't changed
  bool adds_dummy_prefix = true;
  bool removes_extra_whitespaces = true;
  bool escapes_whitespaces = true;  // blanks become U+2581
};
// A copy of sentencepiece's Normalizer::Normalize().
Normaliser sentencepiece_normaliser(SentencePieceNormalising how);

}  // namespace disttrain::input
