// How the text of a value is read. docs/data.md has the table of these rules: each kind of column has one rule, which
// all formats share. Decoders read the numbers in texts by number_of_text(). ColumnFit and ColumnEncoder read words by
// word_of() and label_of().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace disttrain::input {

// Removes the blanks at the begin and at the end of the text. A blank is a character that Unicode calls white space,
// such as a space, a tab, a line end or a no-break space, or U+FEFF, the byte order mark.
std::string_view strip_blanks(std::string_view text);

// The same. It is fast for texts without blanks around them, as nearly all are.
inline std::string_view without_blanks(std::string_view text) {
  const auto may_be_blank = [](unsigned char byte) { return byte <= ' ' || byte >= 0x80; };
  if (text.empty()) return text;
  const bool may_have =
      may_be_blank(static_cast<unsigned char>(text.front())) || may_be_blank(static_cast<unsigned char>(text.back()));
  return may_have ? strip_blanks(text) : text;
}

// Whether the text, which has no blanks around it, means that there is no value: it is empty, one of `missing`
// (data.missing), or NaN as pandas and C write it.
bool is_missing(std::string_view text, const std::vector<std::string>& missing);

// Whether the text is an infinity as C, Python and JavaScript write it.
bool is_infinity(std::string_view text);

// The number that a text gives to a column of numbers. NaN if the text means that there is no value. An infinity, or a
// number beyond the range of a float32, is infinite: number_of() says what becomes of it. Nothing if the text isn't a
// number.
std::optional<float> number_of_text(std::string_view text, const std::vector<std::string>& missing);

// Says what is wrong with the text for a column of numbers, and what to do: "'many' in column 'x', expected ...".
std::string wrong_number(std::string_view text, const std::string& column);

// The word that a text gives to a category, without the blanks around it; "" if there is no value.
std::string_view word_of(std::string_view text, const std::vector<std::string>& missing);

// The same for a label, whose end loses the characters of `strip` (data.columns.NAME.strip) too.
std::string_view label_of(std::string_view text, const std::string& strip, const std::vector<std::string>& missing);

// Says what is wrong with the bytes of a word. Nothing if they are UTF-8 without a NUL.
std::optional<std::string> wrong_bytes(std::string_view word);

}  // namespace disttrain::input
