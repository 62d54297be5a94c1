#include "common/daemon/problems.h"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <tuple>

namespace disttrain::daemon {

namespace {

std::string line_of_text(const std::string& text, std::uint32_t line) {
  std::istringstream in(text);
  std::string result;
  for (std::uint32_t i = 0; i < line; ++i)
    if (!std::getline(in, result)) return "";
  return result;
}

std::string place(const TomlPosition& at) {
  std::string text = at.source ? at.source->name : "";
  if (at.line != 0) text += ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  return text;
}

std::string sentence(const Problem& problem) {
  std::string text = problem.said;
  if (text.empty()) {
    text = problem.found.empty() ? problem.key + " is missing" : problem.key + " is " + problem.found;
    text += "; expected " + problem.expected;
  }
  if (problem.is_unknown && problem.nearest.empty()) text += "; " + problem.expected;
  if (!problem.nearest.empty()) text += "; did you mean " + quoted(problem.nearest) + "?";
  return text;
}

// The line that the position names, and a caret below it. Tabs are kept so that the caret stands where it should.
std::string excerpt(const TomlPosition& at) {
  if (!at.source || at.line == 0) return "";
  const std::string line = line_of_text(at.source->text, at.line);
  if (line.empty()) return "";
  std::string number = std::to_string(at.line);
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
  std::string blank;
  for (std::size_t i = 0; i + 1 < at.column && i < line.size(); ++i) blank += line[i] == '\t' ? '\t' : ' ';
  return "\n" + number + " | " + line + "\n" + std::string(number.size(), ' ') + " | " + blank + "^";
}

// Insertions, deletions and changes that turn one word into the other (Levenshtein 1966), neighbours swapped count as
// one (Damerau 1964).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string to_string(const Problem& problem) {
  const std::string where = place(problem.at);
  return (where.empty() ? "" : where + ": ") + sentence(problem) + excerpt(problem.at);
}

Error to_error(std::vector<Problem> problems) {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tuple(place(TomlPosition{a.at.source}), a.at.line, a.at.column) <
           std::tuple(place(TomlPosition{b.at.source}), b.at.line, b.at.column);
  });
  std::string text;
  for (const Problem& problem : problems) text += (text.empty() ? "" : "\n") + to_string(problem);
  return Error{ErrorCode::kConfig, text};
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 64;  // longer ones are not worth the quadratic comparison
  if (word.size() > kLongestWord) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace disttrain::daemon
