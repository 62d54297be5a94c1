#include "common/program/code_bounds.h"

#include <cctype>
#include <vector>

namespace disttrain::program {

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

class Scan {
 public:
  explicit Scan(std::string_view code) : code_(code) {}

  std::optional<std::string> run() {
    begin_line();
    while (at_ < code_.size() && !problem_) take(code_[at_]);
    return problem_;
  }

 private:
  void take(char c) {
    if (c == '"' || c == '\'') return skip_string(c);
    if (c == '#') {
      while (at_ < code_.size() && code_[at_] != '\n') ++at_;
      return;
    }
    if (is_word(c)) return take_word();
    ++at_;
    switch (c) {
      case '\n':
        ++line_;
        // A line within brackets goes on with the statement of the line before.
        if (open_.size() == 1) {
          end_expression();
          begin_line();
        }
        return;
      case ',':
      case ';':
        return end_expression();
      case '(':
      case '[':
      case '{':
        add_operator();
        open_.push_back(0);
        if (open_.size() > kMaxCodeBrackets + 1) refuse(kMaxCodeBrackets, "brackets inside of each other");
        return;
      case ')':
      case ']':
      case '}':
        if (open_.size() == 1) return;  // isn't code
        end_expression();
        open_.pop_back();
        return;
      case ' ':
      case '\t':
      case '\r':
      case '\\':
        return;
      default:
        return add_operator();
    }
  }

  // Names and numbers are the leaves of an expression. The words between them are operators, as "not" and "else" are.
  void take_word() {
    const std::size_t begin = at_;
    while (at_ < code_.size() && is_word(code_[at_])) ++at_;
    const std::string_view word = code_.substr(begin, at_ - begin);
    if (word == "not" || word == "and" || word == "or" || word == "if" || word == "in" || word == "is" ||
        word == "lambda" || word == "await")
      add_operator();
    if (word == "elif" && ++branches_ > kMaxCodeOperators) refuse(kMaxCodeOperators, "branches of an if");
  }

  void add_operator() {
    ++open_.back();
    if (++operators_ > kMaxCodeOperators) refuse(kMaxCodeOperators, "operators in one expression");
  }
  void end_expression() {
    operators_ -= open_.back();
    open_.back() = 0;
  }

  void begin_line() {
    const std::size_t begin = at_;
    while (at_ < code_.size() && (code_[at_] == ' ' || code_[at_] == '\t')) ++at_;
    if (at_ == code_.size() || code_[at_] == '\n' || code_[at_] == '\r' || code_[at_] == '#') return;
    const std::size_t indentation = at_ - begin;
    while (!blocks_.empty() && blocks_.back() > indentation) blocks_.pop_back();
    if (indentation > 0 && (blocks_.empty() || blocks_.back() < indentation)) blocks_.push_back(indentation);
    if (blocks_.size() > kMaxCodeBlocks) refuse(kMaxCodeBlocks, "blocks inside of each other");
    if (code_.substr(at_).starts_with("if")) branches_ = 0;
  }

  void skip_string(char quote) {
    const bool is_long = code_.substr(at_, 3) == std::string(3, quote);
    at_ += is_long ? 3 : 1;
    for (; at_ < code_.size(); ++at_) {
      if (code_[at_] == '\n') ++line_;
      if (code_[at_] == '\\') {
        ++at_;
      } else if (code_[at_] == quote && (!is_long || code_.substr(at_, 3) == std::string(3, quote))) {
        at_ += is_long ? 3 : 1;
        return;
      } else if (code_[at_] == '\n' && !is_long) {
        return;  // isn't code
      }
    }
  }

  void refuse(std::size_t most, const char* what) {
    if (!problem_) problem_ = "line " + std::to_string(line_) + " has more than " + std::to_string(most) + " " + what;
  }

  const std::string_view code_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<std::size_t> open_ = {0};  // for the statement, and each open bracket: its operators since a comma
  std::size_t operators_ = 0;            // the sum of open_
  std::vector<std::size_t> blocks_;      // the indentations of the blocks around this line
  std::size_t branches_ = 0;             // since a line that begins with "if"
  std::optional<std::string> problem_;
};

}  // namespace

std::optional<std::string> find_deep_code(std::string_view code) {
  return Scan(code).run();
}

}  // namespace disttrain::program
