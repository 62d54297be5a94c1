#include "common/program/pickle_bounds.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/program/chains.h"

namespace disttrain::program {

namespace {

// Whether brackets of the text are open inside of more than kMaxTypeNesting others.
bool is_deep(std::string_view text) {
  std::size_t open = 0;
  std::size_t most = 0;
  for (const char sign : text) {
    if (sign == '[' || sign == '(') most = std::max(most, ++open);
    if ((sign == ']' || sign == ')') && open > 0) --open;
  }
  return most > kMaxTypeNesting;
}

// Follows the opcodes (Python's pickletools.py) of protocol 2 that libtorch writes. Of each value it knows only which
// values it contains.
class Machine {
 public:
  explicit Machine(std::string_view pickle) : rest_(pickle) {}

  std::optional<std::string> run() {
    while (!has_ended_) {
      if (rest_.empty()) return "it ends too early";
      const char opcode = rest_.front();
      rest_.remove_prefix(1);
      if (!step(opcode))
        return "it is damaged, or has the opcode " + std::to_string(static_cast<unsigned char>(opcode)) +
               ", which libtorch doesn't write";
    }
    return deepest();
  }

 private:
  bool step(char opcode) {
    switch (opcode) {
      case '\x80':  // PROTO
        return skip(1);
      case '.':  // STOP
        return has_ended_ = true;
      case 'N':     // NONE
      case '\x88':  // NEWTRUE
      case '\x89':  // NEWFALSE
      case ')':     // EMPTY_TUPLE
      case ']':     // EMPTY_LIST
      case '}':     // EMPTY_DICT
        return push();
      case 'K':  // BININT1
        return skip(1) && push();
      case 'M':  // BININT2
        return skip(2) && push();
      case 'J':  // BININT
        return skip(4) && push();
      case 'G':  // BINFLOAT
        return skip(8) && push();
      case '\x8a':  // LONG1
        return skip_sized(1) && push();
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING
        return take_text(4) && push();
      case 'U':  // SHORT_BINSTRING
        return take_text(1) && push();
      case 'c':  // GLOBAL
        return take_line() && take_line() && push();
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return true;
      case '\x85':  // TUPLE1
      case '\x86':  // TUPLE2
      case '\x87':  // TUPLE3
        return wrap(static_cast<unsigned char>(opcode) - 0x84U);
      case 't':  // TUPLE
        return has_mark() && wrap(stack_.size() - pop_mark());
      case 'Q':  // BINPERSID
        return wrap(1);
      case 'R':     // REDUCE
      case '\x81':  // NEWOBJ
        return wrap(2);
      case 'a':  // APPEND
      case 'b':  // BUILD
        return insert(1);
      case 's':  // SETITEM
        return insert(2);
      case 'e':  // APPENDS
      case 'u':  // SETITEMS
        return has_mark() && insert(stack_.size() - pop_mark());
      case '0':  // POP
        if (room() == 0) return false;
        stack_.pop_back();
        return true;
      case 'q':  // BINPUT
        return put(1);
      case 'r':  // LONG_BINPUT
        return put(4);
      case 'h':  // BINGET
        return get(1);
      case 'j':  // LONG_BINGET
        return get(4);
      default:
        return false;
    }
  }

  std::size_t room() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  bool has_mark() const { return !marks_.empty(); }
  std::size_t pop_mark() {
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }

  bool push() {
    stack_.push_back(static_cast<std::uint32_t>(values_++));
    return values_ <= UINT32_MAX;
  }
  // Makes a value of the last `count` ones.
  bool wrap(std::size_t count) {
    if (room() < count) return false;
    // libtorch parses the second text of a tuple as a type if the tuple is for its restore_type_tag().
    if (count > 1 && deep_texts_.count(stack_[stack_.size() - count + 1]) != 0) has_deep_type_ = true;
    for (std::size_t i = stack_.size() - count; i < stack_.size(); ++i)
      inside_.emplace_back(static_cast<std::uint32_t>(values_), stack_[i]);
    stack_.resize(stack_.size() - count);
    return push();
  }
  // Puts the last `count` values into the one before them.
  bool insert(std::size_t count) {
    if (room() < count + 1) return false;
    const std::uint32_t into = stack_[stack_.size() - count - 1];
    for (std::size_t i = stack_.size() - count; i < stack_.size(); ++i) inside_.emplace_back(into, stack_[i]);
    stack_.resize(stack_.size() - count);
    return true;
  }

  bool put(std::size_t bytes) {
    std::uint64_t key = 0;
    if (stack_.empty() || !take_number(bytes, key)) return false;
    memo_[key] = stack_.back();
    return true;
  }
  bool get(std::size_t bytes) {
    std::uint64_t key = 0;
    if (!take_number(bytes, key)) return false;
    const auto found = memo_.find(key);
    if (found == memo_.end()) return false;
    stack_.push_back(found->second);
    return true;
  }

  bool take_number(std::size_t bytes, std::uint64_t& number) {
    if (rest_.size() < bytes) return false;
    for (std::size_t i = 0; i < bytes; ++i) number |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    return skip(bytes);
  }
  bool skip(std::uint64_t bytes) {
    if (rest_.size() < bytes) return false;
    rest_.remove_prefix(bytes);
    return true;
  }
  bool skip_sized(std::size_t bytes) {
    std::uint64_t size = 0;
    return take_number(bytes, size) && skip(size);
  }
  bool take_text(std::size_t bytes) {
    std::uint64_t size = 0;
    if (!take_number(bytes, size) || rest_.size() < size) return false;
    if (is_deep(rest_.substr(0, size))) deep_texts_.insert(static_cast<std::uint32_t>(values_));
    return skip(size);
  }
  // Takes a part of the name of a type.
  bool take_line() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return false;
    if (is_deep(rest_.substr(0, end))) has_deep_type_ = true;
    return skip(end + 1);
  }

  std::optional<std::string> deepest() const {
    const Chains chains = chains_of(std::vector<std::uint32_t>(values_, 1), inside_);
    if (chains.heaviest > kMaxPickleNesting)
      return "its values are nested deeper than " + std::to_string(kMaxPickleNesting) + " levels";
    if (has_deep_type_)
      return "the name of a type has more than " + std::to_string(kMaxTypeNesting) + " brackets inside of each other";
    if (chains.endless > 0) return "a value contains itself";
    return std::nullopt;
  }

  std::string_view rest_;
  bool has_ended_ = false;
  std::uint64_t values_ = 0;  // so far; they have numbers
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;  // places in the stack
  std::unordered_map<std::uint64_t, std::uint32_t> memo_;
  std::unordered_set<std::uint32_t> deep_texts_;  // the values that are texts with many brackets inside of each other
  bool has_deep_type_ = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> inside_;  // the outer value and the inner one
};

}  // namespace

std::optional<std::string> find_deep_pickle(std::string_view pickle) {
  return Machine(pickle).run();
}

}  // namespace disttrain::program
