#include "common/daemon/problems.h"

#include <algorithm>
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

}  // namespace disttrain::daemon
