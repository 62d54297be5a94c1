#include "tools/disttrain/terminal.h"

#include <langinfo.h>
#include <sys/ioctl.h>

#include <clocale>
#include <iostream>
#include <string_view>

namespace disttrain::cli {

TerminalSize terminal_size(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool is_utf8_locale() {
  const locale_t locale = newlocale(LC_CTYPE_MASK, "", nullptr);
  if (locale == nullptr) return false;
  const bool is_utf8 = std::string_view(nl_langinfo_l(CODESET, locale)) == "UTF-8";
  freelocale(locale);
  return is_utf8;
}

// These are modes of xterm: 1049 is the alternate screen, 25 shows the cursor, and 7 wraps long lines.
void Screen::enter() {
  std::cout << "\x1b[?1049h\x1b[?25l\x1b[?7l" << std::flush;
}

void Screen::leave() {
  std::cout << "\x1b[?7h\x1b[?25h\x1b[?1049l" << std::flush;
}

void Screen::draw(const std::string& frame) {
  std::string text = "\x1b[H";
  const std::size_t end = frame.ends_with('\n') ? frame.size() - 1 : frame.size();
  // The last line is written without its newline, which would scroll the screen.
  for (std::size_t i = 0; i < end; ++i) text += frame[i] == '\n' ? "\x1b[K\n" : std::string(1, frame[i]);
  std::cout << text << "\x1b[K\x1b[J" << std::flush;
}

}  // namespace disttrain::cli
