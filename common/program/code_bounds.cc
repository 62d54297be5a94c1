#include "common/program/code_bounds.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <utility>

#include "common/program/chains.h"

namespace disttrain::program {

namespace {

// Not the end of a line.
bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0 && c != '\n';
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

constexpr std::string_view kTypeComment = "# type:";

// Takes the code apart as libtorch's lexer does (SharedParserData in its lexer.h).
class Scan {
 public:
  // `file`: the name of the file as code has it, such as "__torch__.a". `definitions`: gets those of the file.
  Scan(std::string_view file, std::string_view code, std::vector<Definition>& definitions)
      : file_(file), code_(code), definitions_(definitions) {}

  std::optional<std::string> run() {
    begin_line();
    while (at_ < code_.size() && !problem_) take(code_[at_]);
    end_definition();
    return problem_;
  }

 private:
  void take(char c) {
    if (c == '#' && !code_.substr(at_).starts_with(kTypeComment)) {
      while (at_ < code_.size() && code_[at_] != '\n') ++at_;
      return end_line();
    }
    if (c == '\\' && code_.substr(at_ + 1).starts_with('\n')) {  // the statement goes on in the next line
      at_ += 2;
      ++line_;
      return end_line();
    }
    if (c == '\n') {
      ++at_;
      ++line_;
      end_line();
      // A line within brackets goes on with the statement of the line before.
      if (open_.size() > 1) return;
      end_expression();
      return begin_line();
    }
    if (is_space(c)) {
      ++at_;
      return;
    }
    line_ends_ = 0;
    if (is_word(c)) return take_word();
    if (c == '.' && !reference_.empty() && reference_.back() != '.')
      reference_ += c;
    else
      end_reference();
    if (c == '"' || c == '\'') return skip_string(c);
    at_ += c == '#' ? kTypeComment.size() : 1;
    switch (c) {
      case ',':
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
      default:
        return add_operator();
    }
  }

  // Names and numbers are the leaves of an expression. The words between them are operators, as "not" and "else" are.
  void take_word() {
    const std::string_view word = word_here();
    at_ += word.size();
    if (word == "not" || word == "and" || word == "or" || word == "if" || word == "in" || word == "is" ||
        word == "lambda" || word == "await")
      add_operator();
    if (awaits_name_) {
      begin_definition(word);
    } else if (!reference_.empty() && reference_.back() == '.') {
      reference_ += word;
    } else {
      end_reference();
      if (word == "__torch__") reference_ = word;
    }
    if (word == "NamedTuple") weight_ = std::max(weight_, kNamedTupleChain);
  }
  std::string_view word_here() const {
    std::size_t end = at_;
    while (end < code_.size() && is_word(code_[end])) ++end;
    return code_.substr(at_, end - at_);
  }

  void add_operator() {
    ++open_.back();
    if (++operators_ > kMaxCodeOperators) refuse(kMaxCodeOperators, "operators in one expression");
    note_depth();
  }
  void end_expression() {
    end_reference();
    operators_ -= open_.back();
    open_.back() = 0;
  }

  void end_line() {
    if (++line_ends_ > kMaxCodeLineEnds) refuse(kMaxCodeLineEnds, "empty lines after each other");
  }

  void begin_line() {
    const std::size_t begin = at_;
    while (at_ < code_.size() && is_space(code_[at_])) ++at_;
    if (at_ == code_.size() || code_[at_] == '\n') return;
    if (code_[at_] == '#' && !code_.substr(at_).starts_with(kTypeComment)) return;
    const std::size_t indentation = at_ - begin;
    while (blocks_.size() > 1 && blocks_.back().indentation > indentation) blocks_.pop_back();
    if (blocks_.empty() || blocks_.back().indentation < indentation) blocks_.push_back({indentation, 0});
    if (blocks_.size() > kMaxCodeBlocks + 1) refuse(kMaxCodeBlocks, "blocks inside of each other");
    const std::string_view word = word_here();
    if (word == "elif")
      ++blocks_.back().branches;
    else if (word != "else")
      blocks_.back().branches = 0;
    branches_ = 0;
    for (const Block& block : blocks_) branches_ += block.branches;
    if (branches_ > kMaxCodeBranches) refuse(kMaxCodeBranches, "branches of an if");
    end_reference();
    awaits_name_ = blocks_.size() == 1 && (word == "def" || word == "class");
    if (awaits_name_) {
      end_definition();
      at_ += word.size();
    } else if (word == "def") {
      end_function();
    }
    note_depth();
  }

  void begin_definition(std::string_view name) {
    awaits_name_ = false;
    definitions_.push_back({std::string(file_) + "." + std::string(name), 0, {}});
    has_definition_ = true;
  }
  void end_definition() {
    end_reference();
    end_function();
    if (has_definition_) definitions_.back().weight = weight_;
    has_definition_ = false;
    weight_ = 0;
  }
  void end_function() { weight_ += 4 + std::exchange(deepest_, 0); }
  void note_depth() { deepest_ = std::max(deepest_, operators_ + 2 * (blocks_.size() + branches_)); }
  void end_reference() {
    if (reference_.size() > kMaxCodeName) refuse(kMaxCodeName, "characters in one name");
    if (!reference_.empty() && has_definition_) definitions_.back().references.insert(reference_);
    reference_.clear();
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

  struct Block {
    std::size_t indentation = 0;
    std::size_t branches = 0;  // "elif"s of the if that this line belongs to
  };

  const std::string_view file_;
  const std::string_view code_;
  std::vector<Definition>& definitions_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<std::size_t> open_ = {0};  // for the statement, and each open bracket: its operators since a comma
  std::size_t operators_ = 0;            // the sum of open_
  std::vector<Block> blocks_;            // around this line; the first one is the file
  std::size_t branches_ = 0;             // of all these blocks
  std::size_t line_ends_ = 0;            // since a word or sign
  bool has_definition_ = false;          // the last of definitions_ is the one around this place
  bool awaits_name_ = false;             // after "def" or "class" at the top of the file
  std::size_t weight_ = 0;               // of the definition, without the function that is being read
  std::size_t deepest_ = 0;              // of the function, or of the lines before the first one
  std::string reference_;                // the part of a name that has been read: "__torch__.torch."
  std::optional<std::string> problem_;
};

}  // namespace

std::optional<std::string> CodeBounds::add(std::string_view member, std::string_view code) {
  // libtorch looks for "__torch__.a.B" in the file "__torch__/a" below ARCHIVE/code.
  constexpr std::string_view kFolder = "/code/";
  const std::size_t folder = member.find('/');
  const bool is_code = folder != std::string_view::npos && member.substr(folder).starts_with(kFolder);
  std::string file(is_code ? member.substr(folder + kFolder.size()) : member);
  if (file.ends_with(".py")) file.resize(file.size() - 3);
  std::ranges::replace(file, '/', '.');
  if (is_code && file != "__torch__" && !file.starts_with("__torch__."))
    return "it isn't named __torch__, as libtorch names all code";
  return Scan(file, code, definitions_).run();
}

std::optional<std::string> CodeBounds::find_long_chain() const {
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  std::vector<std::uint32_t> weights;
  for (const Definition& definition : definitions_) {
    if (!numbers.emplace(definition.name, static_cast<std::uint32_t>(weights.size())).second)
      return "it has two definitions of " + definition.name;
    weights.push_back(static_cast<std::uint32_t>(definition.weight));
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> inside;
  for (std::uint32_t outer = 0; outer < weights.size(); ++outer)
    for (const std::string& reference : definitions_[outer].references) {
      if (reference.starts_with("__torch__.torch.classes.")) continue;  // a class of libtorch, in C++
      // The name may go on with that of a member.
      std::string_view name = reference;
      while (!numbers.contains(name) && name.find('.') != std::string_view::npos)
        name = name.substr(0, name.rfind('.'));
      const auto inner = numbers.find(name);
      // With another name for "__torch__.a", code could reach a definition without the definition's name.
      if (inner == numbers.end()) return definitions_[outer].name + " needs " + reference + ", which the code lacks";
      if (inner->second != outer) inside.emplace_back(outer, inner->second);
    }
  const Chains chains = chains_of(weights, inside);
  if (chains.heaviest + chains.endless <= kMaxCodeChain) return std::nullopt;
  return "its functions and classes need each other in too long a chain (" +
         std::to_string(chains.heaviest + chains.endless) + "; expected at most " + std::to_string(kMaxCodeChain) + ")";
}

}  // namespace disttrain::program
