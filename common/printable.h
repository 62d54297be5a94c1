// Makes a text from a stranger safe to show on a terminal, in a log or in an event. The result can't control the
// terminal, change the order in which text is shown, or begin a line of its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttrain {

enum class Lines { kOne, kMany };

// Shows control characters (C0, DEL, C1) and bytes that aren't UTF-8 as \xNN. Shows characters that change the writing
// direction, line separators and the byte order mark as \uNNNN. Shows a newline as \n, or keeps it with Lines::kMany.
// Turns a tab into a space.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

// Returns true if printable(text) returns the text unchanged.
bool is_printable(std::string_view text);

// Returns the first `most` bytes. Returns fewer if a character would otherwise be cut in two.
std::string_view cut_text(std::string_view text, std::size_t most);

// Puts the lines that printable() has joined on lines of their own again, if they begin with two blanks, such as the
// lines that a trainer printed (LastLines in engine/trainer/output_lines.h). So none of them looks like a line of
// ours.
std::string unfolded(std::string_view text);

// Indents all lines after the first by `blanks`, so that no line looks like the beginning of another log entry.
std::string indented(std::string_view text, std::size_t blanks = 4);

}  // namespace disttrain
