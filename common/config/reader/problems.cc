#include "common/config/reader/problems.h"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "common/printable.h"

namespace disttrain::config {

namespace {

std::string line_of_text(const std::string& text, std::uint32_t line) {
  std::istringstream in(text);
  std::string result;
  for (std::uint32_t i = 0; i < line; ++i)
    if (!std::getline(in, result)) return "";
  return result;
}

// Makes a text from a user's file safe to print on a terminal.
std::string shown(const std::string& text, std::size_t most) {
  return printable(cut_text(text, most)) + (text.size() > most ? "..." : "");
}

std::string place(const TomlPosition& at) {
  constexpr std::size_t kLongestName = 300;
  std::string text = at.source ? shown(at.source->name, kLongestName) : "";
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
  constexpr std::size_t kLongestSentence = 1000;
  return shown(text, kLongestSentence);
}

// Returns the line at this position, with a caret under the column. A tab is shown as one space.
std::string excerpt(const TomlPosition& at) {
  if (!at.source || at.line == 0) return "";
  constexpr std::size_t kLongestExcerpt = 160;
  std::string line = line_of_text(at.source->text, at.line);
  if (line.empty() || at.column > kLongestExcerpt) return "";
  line = shown(line, kLongestExcerpt);
  std::string number = std::to_string(at.line);
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
  const std::string blank(std::min<std::size_t>(at.column - 1, line.size()), ' ');
  return "\n" + number + " | " + line + "\n" + std::string(number.size(), ' ') + " | " + blank + "^";
}

}  // namespace

std::string to_string(const Problem& problem) {
  const std::string where = place(problem.at);
  return (where.empty() ? "" : where + ": ") + sentence(problem) + excerpt(problem.at);
}

Error to_error(std::vector<Problem> problems, std::size_t left_out) {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tuple(place(TomlPosition{a.at.source}), a.at.line, a.at.column) <
           std::tuple(place(TomlPosition{b.at.source}), b.at.line, b.at.column);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), kMaxProblemsTold); ++i)
    text += (text.empty() ? "" : "\n") + to_string(problems[i]);
  left_out += problems.size() - std::min(problems.size(), kMaxProblemsTold);
  if (left_out != 0)
    text += "\nand " + std::to_string(left_out) + (left_out == 1 ? " other problem" : " other problems");
  return Error{ErrorCode::kConfig, text};
}

}  // namespace disttrain::config
