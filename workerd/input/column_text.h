// How the text of a value is read. docs/data.md has the table of these rules: each kind of column has one rule, which
// all formats share. Decoders read the numbers in texts by number_of_text(). ColumnFit and ColumnEncoder read words by
// word_of() and label_of().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace disttrain::input {

// Removes the blanks around the text: spaces, tabs, CR and LF.
inline std::string_view without_blanks(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
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
