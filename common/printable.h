// Texts that came from somebody else, made fit for a terminal, a log line, an event: nothing in them can command a
// terminal, reorder what is read, or begin a line of its own. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttrain {

enum class Lines { kOne, kMany };

// Control characters (C0, DEL, C1), bytes that aren't UTF-8 and characters that change the direction of writing are
// shown as \xNN or \uNNNN. A newline is shown as \n, or kept with kMany. A tab becomes a blank.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

// Whether printable() would change nothing.
bool is_printable(std::string_view text);

// At most `most` bytes from the beginning, without the half of a character.
std::string_view cut_text(std::string_view text, std::size_t most);

// Later lines stand behind the first by `blanks`, so that none of them looks like the beginning of another entry.
std::string indented(std::string_view text, std::size_t blanks = 4);

}  // namespace disttrain
