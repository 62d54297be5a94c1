#include "input/tokens/bpe.h"

#include <queue>
#include <tuple>
#include <utility>

#include "input/tokens/unicode.h"

namespace disttrain::input {

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// A piece of the word. A piece that was merged into the one before it has the id -1.
struct Symbol {
  std::int32_t id = 0;
  std::size_t before = kNone;
  std::size_t after = kNone;
};

struct Candidate {
  std::uint32_t rank = 0;
  std::size_t at = 0;
  std::int32_t merged = 0;
  // The largest candidate of a heap is the next merge: that of the lowest rank, and of these the first in the word.
  bool operator<(const Candidate& other) const { return std::tie(rank, at) > std::tie(other.rank, other.at); }
};

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace

Bpe::Bpe(BpeOptions options) : options_(std::move(options)), bytes_(ByteTokens::of(options_.vocabulary)) {}

void Bpe::add_merge(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged) {
  merges_.emplace(key_of(left, right), Merge{rank, merged});
}

const Bpe::Merge* Bpe::find(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::add_characters(std::string_view word, std::vector<std::int32_t>& ids) const {
  bool has_unknown = false;  // one that isn't in `ids` yet
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = word.substr(at, character_bytes(word, at));
    at += character.size();
    const auto found = options_.vocabulary.find(character);
    if (found != options_.vocabulary.end()) {
      if (has_unknown) ids.push_back(*options_.unknown);
      has_unknown = false;
      ids.push_back(found->second);
    } else if (options_.falls_back_to_bytes && bytes_.has_all(character)) {
      bytes_.add(character, ids);
    } else if (options_.unknown) {
      if (has_unknown && !options_.fuses_unknown) ids.push_back(*options_.unknown);
      has_unknown = true;
    }
  }
  if (has_unknown) ids.push_back(*options_.unknown);
}

void Bpe::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (options_.ignores_merges) {
    const auto found = options_.vocabulary.find(word);
    if (found != options_.vocabulary.end()) return ids.push_back(found->second);
  }
  std::vector<std::int32_t> characters;
  characters.reserve(word.size());
  add_characters(word, characters);
  std::vector<Symbol> symbols(characters.size());
  std::vector<Candidate> heap;
  heap.reserve(symbols.size());
  std::priority_queue<Candidate> candidates(std::less<Candidate>(), std::move(heap));
  const auto propose = [&](std::size_t at) {
    if (at == kNone || symbols[at].after == kNone) return;
    const Merge* const merge = find(symbols[at].id, symbols[symbols[at].after].id);
    if (merge != nullptr) candidates.push({merge->rank, at, merge->merged});
  };
  for (std::size_t i = 0; i < symbols.size(); ++i)
    symbols[i] = {characters[i], i == 0 ? kNone : i - 1, i + 1 == symbols.size() ? kNone : i + 1};
  for (std::size_t i = 0; i < symbols.size(); ++i) propose(i);
  while (!candidates.empty()) {
    const Candidate next = candidates.top();
    candidates.pop();
    Symbol& left = symbols[next.at];
    if (left.id < 0 || left.after == kNone) continue;
    Symbol& right = symbols[left.after];
    // One of the two may have changed since the pair was proposed.
    const Merge* const merge = find(left.id, right.id);
    if (merge == nullptr || merge->merged != next.merged) continue;
    left.id = next.merged;
    left.after = right.after;
    right.id = -1;
    if (left.after != kNone) symbols[left.after].before = next.at;
    propose(left.before);
    propose(next.at);
  }
  for (std::size_t i = symbols.empty() ? kNone : 0; i != kNone; i = symbols[i].after) ids.push_back(symbols[i].id);
}

}  // namespace disttrain::input
