#include "workerd/input/column_values.h"

#include <cmath>

namespace disttrain::input {

bool has_values(const ColumnSection& column) {
  return column.kind != ColumnKind::kIgnore && column.cross.empty();
}

std::string key_of(const ColumnSection& column) {
  return "data.columns." + column.name;
}

const std::string& name_in_files(const ColumnSection& column) {
  return column.from.empty() ? column.name : column.from;
}

std::uint64_t value_count(const ColumnSection& column) {
  std::uint64_t count = 1;
  for (const std::uint32_t size : column.shape) count *= size;
  return count;
}

std::string_view stripped(std::string_view word, const std::string& strip) {
  std::size_t size = word.size();
  while (size > 0 && strip.find(word[size - 1]) != std::string::npos) --size;
  return word.substr(0, size);
}

Status check_lengths(const ColumnSection& section, const TableColumn& from, std::uint64_t expected,
                     const PlaceOf& place_of) {
  const auto bad = [&](std::uint64_t record, std::uint64_t found) {
    const std::string values = found == 0 ? "no value" : found == 1 ? "1 value" : std::to_string(found) + " values";
    return fail(ErrorCode::kData,
                place_of(record) + ": " + values + " in column '" + name_in_files(section) + "', expected " +
                    (expected == 1 ? "one value" : std::to_string(expected) + " values") + ": correct the record" +
                    (found == 0 ? ", or " + key_of(section) + ".from if it has another name there"
                     : section.kind == ColumnKind::kNumeric ? " or " + key_of(section) + ".shape"
                                                            : ""));
  };
  for (std::uint64_t i = 0; i < from.lengths.size(); ++i)
    if (from.lengths[i] != expected && !(from.lengths[i] == 0 && expected == 1 && section.missing))
      return bad(i, from.lengths[i]);
  if (from.lengths.empty() && expected != 1) return bad(0, 1);
  return {};
}

Result<float> number_of(const ColumnSection& section, float number, std::uint64_t record, const PlaceOf& place_of) {
  if (!std::isnan(number)) return number;
  if (section.missing) return static_cast<float>(*section.missing);
  return fail(ErrorCode::kData, place_of(record) + ": no value in column '" + name_in_files(section) +
                                    "', expected one value: correct the file, or set " + key_of(section) + ".missing");
}

tl::unexpected<Error> no_label(const ColumnSection& column, const std::string& place) {
  return fail(ErrorCode::kData, place + ": no label in column '" + name_in_files(column) +
                                    "', expected a word or a number: correct the record");
}

}  // namespace disttrain::input
