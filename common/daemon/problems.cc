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

// At most so many bytes, without half a character at the end.
std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// A terminal obeys control characters: they are shown as "?". Tabs stay.
std::string printable(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t bytes = text[i] == '\t' ? 0 : control_character_at(text, i);
    result += bytes == 0 ? text[i] : '?';
    if (bytes != 0) i += bytes - 1;
  }
  return result;
}

std::string place(const TomlPosition& at) {
  constexpr std::size_t kLongestName = 300;
  std::string text = at.source ? printable(shortened(at.source->name, kLongestName)) : "";
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
  return printable(shortened(text, kLongestSentence));
}

// The line that the position names, and a caret below it. Tabs are kept so that the caret stands where it should.
std::string excerpt(const TomlPosition& at) {
  if (!at.source || at.line == 0) return "";
  constexpr std::size_t kLongestExcerpt = 160;
  std::string line = line_of_text(at.source->text, at.line);
  if (line.empty() || at.column > kLongestExcerpt) return "";
  line = printable(shortened(line, kLongestExcerpt));
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

}  // namespace disttrain::daemon
