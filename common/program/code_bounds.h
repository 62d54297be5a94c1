// Bounds on the code of a TorchScript archive. libtorch parses it, and makes a graph of it, by recursion: 20,000 nested
// parentheses overflow the stack and end the process. So this is checked before libtorch gets the files. The bounds
// keep it within 6 of the 8 MiB that a thread's stack has. They don't bound the time that it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace disttrain::program {

// Python has the same two bounds on what it reads.
inline constexpr std::size_t kMaxCodeBrackets = 200;  // ( [ { inside of each other
inline constexpr std::size_t kMaxCodeBlocks = 100;    // blocks inside of each other, each with a larger indentation
// Operators, words and brackets that make one expression, without those between other commas. libtorch writes long
// expressions as several statements.
inline constexpr std::size_t kMaxCodeOperators = 1000;
// Branches ("elif") of an if, and of those around it.
inline constexpr std::size_t kMaxCodeBranches = 1000;
// Ends of lines, comments and joins of lines ("\") from one word or sign to the next.
inline constexpr std::size_t kMaxCodeLineEnds = 1000;
// Characters of a name that begins with "__torch__.".
inline constexpr std::size_t kMaxCodeName = 1000;
// libtorch compiles a function or class when it comes to its name in another one. So this bounds the sum along a chain
// of them. An operator counts 1, a block or branch 2, a function or class 4, each where the definition is deepest. A
// class counts all its functions, because they may call each other. In 8 MiB, libtorch compiles chains of 4500
// operators, 2700 branches, 2850 blocks, 1500 functions, or 1000 classes with a function.
inline constexpr std::size_t kMaxCodeChain = 3000;
// A NamedTuple counts this much: libtorch's time doubles with each one inside of another, and is 1 s for 20 of them.
inline constexpr std::size_t kNamedTupleChain = 500;

// A function or class at the top of a file.
struct Definition {
  std::string name;  // with that of its file: "__torch__.torch.nn.modules.linear.Linear"
  std::size_t weight = 0;
  std::set<std::string> references;  // the names in it that begin with "__torch__."
};

class CodeBounds {
 public:
  // Adds the code of a file of the archive. `member`: the file's whole name in the archive. Returns the first place
  // that is beyond a bound, as "line 7 has more than 200 brackets inside of each other", or none. Works in one pass
  // without recursion, on any bytes. Of a text that isn't code, it may find anything.
  std::optional<std::string> add(std::string_view member, std::string_view code);
  // Call it after all files were added. Returns the problem if definitions need each other in too long a chain.
  std::optional<std::string> find_long_chain() const;

 private:
  std::vector<Definition> definitions_;
};

}  // namespace disttrain::program
