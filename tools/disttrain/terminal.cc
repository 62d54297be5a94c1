#include "tools/disttrain/terminal.h"

#include <langinfo.h>
#include <sys/ioctl.h>

#include <clocale>
#include <iostream>
#include <string_view>

#include "tools/disttrain/printable_output.h"

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
  write_codes(std::cout, "\x1b[?1049h\x1b[?25l\x1b[?7l");
  std::cout << std::flush;
}

void Screen::leave() {
  write_codes(std::cout, "\x1b[?7h\x1b[?25h\x1b[?1049l");
  std::cout << std::flush;
}

void Screen::draw(const std::string& frame) {
  write_codes(std::cout, "\x1b[H");
  std::string_view rest = frame;
  // The last line is written without its newline, which would scroll the screen.
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  for (;;) {
    const std::size_t end = rest.find('\n');
    std::cout << rest.substr(0, end);
    write_codes(std::cout, "\x1b[K");
    if (end == std::string_view::npos) break;
    std::cout << '\n';
    rest.remove_prefix(end + 1);
  }
  write_codes(std::cout, "\x1b[J");
  std::cout << std::flush;
}

}  // namespace disttrain::cli
