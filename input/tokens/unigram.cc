#include "input/tokens/unigram.h"

#include <algorithm>
#include <utility>

#include "input/tokens/unicode.h"

namespace disttrain::input {

namespace {

constexpr double kUnknownPenalty = 10.0;
constexpr std::int32_t kUnknown = -1;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

// The best way to cut the word up to a byte.
struct Way {
  double score = 0.0;
  std::size_t begin = kNowhere;  // of its last piece
  std::int32_t id = kUnknown;    // of its last piece
};

}  // namespace

Unigram::Unigram(UnigramOptions options) : options_(std::move(options)) {}

double Unigram::sum(double a, double b) const {
  return options_.adds_as_float ? double{static_cast<float>(a) + static_cast<float>(b)} : a + b;
}

void Unigram::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  const double unknown_score = sum(options_.smallest_score, -kUnknownPenalty);
  std::vector<Way> ways(word.size() + 1);
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t character = character_bytes(word, begin);
    const double score = ways[begin].score;
    bool has_character = false;
    const auto consider = [&](std::size_t bytes, std::int32_t id, double piece) {
      Way& way = ways[begin + bytes];
      const double candidate = sum(piece, score);
      if (way.begin == kNowhere || candidate > way.score) way = {candidate, begin, id};
    };
    options_.pieces.find_prefixes(word.substr(begin), [&](std::size_t bytes, std::int32_t id) {
      consider(bytes, id, options_.scores[static_cast<std::size_t>(id)]);
      has_character = has_character || bytes == character;
    });
    if (!has_character) consider(character, kUnknown, unknown_score);
    begin += character;
  }
  std::vector<Way> pieces;  // from the last one to the first; `score` is unused
  std::vector<std::size_t> ends;
  for (std::size_t end = word.size(); end > 0; end = ways[end].begin) {
    if (!pieces.empty() && pieces.back().id == kUnknown && ways[end].id == kUnknown) {
      pieces.back().begin = ways[end].begin;
      continue;
    }
    pieces.push_back(ways[end]);
    ends.push_back(end);
  }
  for (std::size_t i = pieces.size(); i-- > 0;) {
    const std::string_view piece = word.substr(pieces[i].begin, ends[i] - pieces[i].begin);
    if (pieces[i].id != kUnknown)
      ids.push_back(pieces[i].id);
    else if (options_.bytes && options_.bytes->has_all(piece))
      options_.bytes->add(piece, ids);
    else if (options_.unknown)
      ids.push_back(*options_.unknown);
  }
}

}  // namespace disttrain::input
