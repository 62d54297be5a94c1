// The terminal that a verb draws on.
#pragma once

#include <cstddef>
#include <string>

namespace disttrain::cli {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// What the terminal says; where it says nothing, 80 x 24.
TerminalSize terminal_size(int descriptor);

// Whether the environment's letters (LC_ALL, LC_CTYPE, LANG) are UTF-8.
bool is_utf8_locale();

// All of the terminal behind stdout, on a screen of its own without a cursor, from enter() to leave() or its end. What
// was there before is there again then.
class Screen {
 public:
  Screen() { enter(); }
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void enter();
  void leave();
  // In place of what is there. Lines end with "\n"; those that are too long are cut by the terminal.
  void draw(const std::string& frame);
};

}  // namespace disttrain::cli
