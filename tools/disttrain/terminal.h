// The terminal that a verb draws on.
#pragma once

#include <cstddef>
#include <string>

namespace disttrain::cli {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// The size that the terminal reports; 80 x 24 where it reports none.
TerminalSize terminal_size(int descriptor);

// Whether the locale (LC_ALL, LC_CTYPE, LANG) uses UTF-8.
bool is_utf8_locale();

// The whole terminal behind stdout: its alternate screen, without a cursor, from enter() to leave() or the end of this
// object. The earlier contents then come back.
class Screen {
 public:
  Screen() { enter(); }
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void enter();
  void leave();
  // Replaces what the screen shows. Lines end with "\n"; the terminal cuts those that are too long.
  void draw(const std::string& frame);
};

}  // namespace disttrain::cli
