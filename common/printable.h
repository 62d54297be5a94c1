// Makes foreign text safe for a terminal, a log line, an event: the result can't control a terminal, reorder what is
// shown, or begin a line of its own. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttrain {

enum class Lines { kOne, kMany };

// Shows control characters (C0, DEL, C1), bytes that aren't UTF-8 and characters that change the writing direction as
// \xNN or \uNNNN. Shows a newline as \n, or keeps it with kMany. Turns a tab into a space.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

// Whether printable() would leave the text as it is.
bool is_printable(std::string_view text);

// The first `most` bytes at most, without a partial character at the end.
std::string_view cut_text(std::string_view text, std::size_t most);

// Indents the lines after the first by `blanks`, so that none looks like the beginning of another entry.
std::string indented(std::string_view text, std::size_t blanks = 4);

}  // namespace disttrain
