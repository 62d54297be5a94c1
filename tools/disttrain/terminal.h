// The terminal that a verb draws on.
#pragma once

#include <cstddef>
#include <string>

namespace disttrain::cli {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// Returns the size that the terminal reports, or 80 x 24 if it reports none.
TerminalSize terminal_size(int descriptor);

// Returns true if the locale (LC_ALL, LC_CTYPE, LANG) uses UTF-8.
bool is_utf8_locale();

// Takes over the whole terminal behind stdout. From enter() to leave(), the terminal shows its alternate screen without
// a cursor. Then its earlier contents come back. The destructor calls leave().
class Screen {
 public:
  Screen() { enter(); }
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void enter();
  void leave();
  // Shows `frame` instead of the earlier frame. Its lines end with "\n". The terminal cuts lines that are too long.
  void draw(const std::string& frame);
};

}  // namespace disttrain::cli
