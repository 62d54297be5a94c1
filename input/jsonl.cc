#include "input/jsonl.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/printable.h"
#include "input/column_text.h"
#include "input/list_shape.h"
#include "input/number_text.h"
#include "input/number_word.h"

namespace disttrain::input {

namespace {

namespace ondemand = simdjson::ondemand;

constexpr int kMaxArrayDepth = 32;

// A name in an object: the columns that it fills, and the wanted names in the object that it holds.
struct Name {
  std::string text;
  std::vector<std::size_t> columns;
  std::vector<Name> inside;
  std::uint64_t record = 0;  // the last one that has it, from 1
  std::size_t guess = 0;     // of `inside`: the one after the last hit, because most objects have the same order

  Name& at(std::string_view wanted) {
    for (Name& name : inside)
      if (name.text == wanted) return name;
    return inside.emplace_back(Name{std::string(wanted), {}, {}});
  }

  Name* find(std::string_view key) {
    for (std::size_t n = 0; n < inside.size(); ++n) {
      const std::size_t i = guess + n < inside.size() ? guess + n : guess + n - inside.size();
      if (inside[i].text != key) continue;
      guess = i + 1 == inside.size() ? 0 : i + 1;
      return &inside[i];
    }
    return nullptr;
  }
};

const char* name_of(ondemand::json_type type) {
  switch (type) {
    case ondemand::json_type::array:
      return "an array";
    case ondemand::json_type::object:
      return "an object";
    case ondemand::json_type::number:
      return "a number";
    case ondemand::json_type::string:
      return "a string";
    case ondemand::json_type::boolean:
      return "a boolean";
    case ondemand::json_type::null:
      return "null";
  }
  return "something else";
}

std::string_view without_blanks_behind(std::string_view token) {
  while (!token.empty() && (token.back() == ' ' || token.back() == '\t' || token.back() == '\r'))
    token.remove_suffix(1);
  return token;
}

// What is wrong with a line.
using Problem = std::optional<std::string>;

// A number that JSON lacks, as Python's json module writes and reads them, or one beyond the range of a double.
std::optional<double> nonfinite_in(std::string_view token) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double number = 0.0;
  const auto read = std::from_chars(token.data(), token.data() + token.size(), number);
  const bool is_number = read.ptr == token.data() + token.size();
  if (is_number && read.ec == std::errc::result_out_of_range) return token.starts_with('-') ? -kInfinity : kInfinity;
  if (token == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (token == "Infinity") return kInfinity;
  return token == "-Infinity" ? std::optional(-kInfinity) : std::nullopt;
}

// As Python reads it: a token with a fraction or an exponent is a double, any other one is a whole number of any size.
bool is_whole(std::string_view token) {
  return token.find_first_not_of("-0123456789") == std::string_view::npos;
}

Problem not_json(simdjson::error_code error) {
  return "found a line that isn't valid JSON (" + std::string(simdjson::error_message(error)) +
         "), expected a JSON object: correct the line";
}

// A line has more text behind its object.
Problem more_than_an_object(std::string_view more) {
  if (more.empty() || more.starts_with('{'))
    return "found more than one JSON value, expected one on each line: correct the line";
  return "found the text " + printable(shown_text(more)) +
         " behind the JSON object, expected one object on each line: correct the line";
}

// The text behind the object with which the line begins, without blanks around it; "" if there is none, or the object
// has no end.
std::string_view text_behind_object(std::string_view line) {
  line = without_blanks(line);
  if (!line.starts_with('{')) return "";
  std::size_t depth = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (is_in_string && line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      is_in_string = !is_in_string;
    else if (!is_in_string && line[i] == '{')
      ++depth;
    else if (!is_in_string && line[i] == '}' && --depth == 0)
      return without_blanks(line.substr(i + 1));
  }
  return "";
}

// To simdjson text behind an object looks like the inside of the object.
Problem not_json(simdjson::error_code error, std::string_view line) {
  const bool may_have_more = error == simdjson::INCOMPLETE_ARRAY_OR_OBJECT || error == simdjson::UNCLOSED_STRING;
  const std::string_view more = may_have_more ? text_behind_object(line) : std::string_view();
  return more.empty() ? not_json(error) : more_than_an_object(more);
}

}  // namespace

class JsonlDecoder::Reader {
 public:
  explicit Reader(const std::vector<WantedColumn>& wanted) : wanted_(wanted), starts_(wanted.size()) {
    for (std::size_t c = 0; c < wanted_.size(); ++c) {
      const std::string_view whole = wanted_[c].name;
      Name* name = &names_;
      std::size_t begin = 0;
      for (std::size_t dot = whole.find('.'); dot != std::string_view::npos; dot = whole.find('.', begin)) {
        name = &name->at(whole.substr(begin, dot - begin));
        begin = dot + 1;
      }
      name->at(whole.substr(begin)).columns.push_back(c);
      if (begin > 0) names_.at(whole).columns.push_back(c);  // a key may have dots itself
    }
  }

  const std::vector<WantedColumn>& wanted() const { return wanted_; }

  Problem read(const RecordBlock& block, const RecordPlace& place, Table& table) {
    table_ = &table;
    ++record_;
    for (std::size_t c = 0; c < wanted_.size(); ++c) starts_[c] = values_in(table.columns[c]);
    // simdjson reads a little behind the JSON.
    block_text_ = reinterpret_cast<const char*>(block.bytes.data()) + place.begin;
    text_ = block_text_;
    std::size_t capacity = block.bytes.size() - place.begin;
    if (capacity < place.bytes + simdjson::SIMDJSON_PADDING) {
      capacity = place.bytes + simdjson::SIMDJSON_PADDING;
      padded_.resize(capacity);
      std::memcpy(padded_.data(), block_text_, place.bytes);
      text_ = padded_.data();
    }
    const std::string_view line(text_, place.bytes);
    ondemand::document document;
    if (const auto error = parser_.iterate(text_, place.bytes, capacity).get(document)) return not_json(error, line);
    ondemand::json_type type;
    if (const auto error = document.type().get(type)) return not_json(error);
    if (type != ondemand::json_type::object)
      return std::string("found ") + name_of(type) + ", expected a JSON object: correct the line";
    ondemand::object object;
    if (const auto error = document.get_object().get(object)) return not_json(error, line);
    if (Problem problem = read_object(object, names_)) return problem;
    const char* end = nullptr;
    if (document.current_location().get(end) != simdjson::OUT_OF_BOUNDS)
      return more_than_an_object(text_behind_object(line));
    for (std::size_t c = 0; c < wanted_.size(); ++c) {
      TableColumn& column = table.columns[c];
      column.lengths.push_back(static_cast<std::uint32_t>(values_in(column) - starts_[c]));
    }
    return std::nullopt;
  }

 private:
  Problem read_object(ondemand::object& object, Name& names) {
    for (auto field : object) {
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) return not_json(error);
      Name* const name = names.find(key);
      if (name == nullptr) continue;
      ondemand::value value;
      if (const auto error = field.value().get(value)) return not_json(error);
      ondemand::json_type type;
      const auto no_type = value.type().get(type);
      for (const std::size_t c : name->columns) drop_values_behind(table_->columns[c], starts_[c]);
      if (name->record == record_)  // the record has the name twice
        for (const Name& inner : name->inside) drop_values(inner);
      name->record = record_;
      Problem problem;
      if (no_type != simdjson::SUCCESS) {
        problem = read_nonfinite(value, *name, no_type);
      } else if (type == ondemand::json_type::object && !name->inside.empty()) {
        ondemand::object inside;
        if (const auto error = value.get_object().get(inside)) return not_json(error);
        problem = read_object(inside, *name);
      } else if (!name->columns.empty()) {
        problem = read_value(value, type, *name, 0);
      }
      if (problem) return problem;
    }
    return std::nullopt;
  }

  void drop_values(const Name& name) {
    for (const std::size_t c : name.columns) drop_values_behind(table_->columns[c], starts_[c]);
    for (const Name& inner : name.inside) drop_values(inner);
  }

  // Appends a value, or all values of an array, to the columns of the name.
  Problem read_value(ondemand::value& value, ondemand::json_type type, const Name& name, int depth) {
    switch (type) {
      case ondemand::json_type::array:
        return read_array(value, name, depth);
      case ondemand::json_type::object:
        return wrong("an object", name.columns.front());
      case ondemand::json_type::string:
        return read_string(value, name);
      case ondemand::json_type::number:
        return read_number(value, name);
      case ondemand::json_type::boolean:
        return read_boolean(value, name);
      case ondemand::json_type::null:
        return read_null(value, name, depth);
    }
    return std::nullopt;
  }

  Problem read_array(ondemand::value& value, const Name& name, int depth) {
    if (depth == kMaxArrayDepth)
      return wrong("arrays in arrays", name.columns.front(),
                   "at most " + std::to_string(kMaxArrayDepth) + " arrays within each other");
    ondemand::array array;
    if (const auto error = value.get_array().get(array)) return not_json(error);
    const auto level = static_cast<std::size_t>(depth);
    if (depth == 0) lists_.start();
    std::uint64_t elements = 0;
    for (auto element : array) {
      ++elements;
      ondemand::value inside;
      if (const auto error = element.get(inside)) return not_json(error);
      ondemand::json_type type;
      const auto no_type = inside.type().get(type);
      if (no_type != simdjson::SUCCESS || type != ondemand::json_type::array) lists_.note_value(level + 1);
      Problem problem = no_type != simdjson::SUCCESS ? read_nonfinite(inside, name, no_type)
                                                     : read_value(inside, type, name, depth + 1);
      if (problem) return problem;
    }
    lists_.note_list(level, elements);
    for (const std::size_t c : name.columns)
      if (depth == 0 && !lists_.fits(wanted_[c].shape))
        return wrong("arrays of another shape", c, lists_of_shape(wanted_[c].shape));
    return std::nullopt;
  }

  Problem read_string(ondemand::value& value, const Name& name) {
    const std::string_view token = without_blanks_behind(value.raw_json_token());
    std::string_view text;
    const bool is_plain = token.size() >= 2 && token.find('\\') == std::string_view::npos;
    if (is_plain) {
      ondemand::raw_json_string raw;
      if (const auto error = value.get_raw_json_string().get(raw)) return not_json(error);
      text = in_block(token.substr(1, token.size() - 2));
    } else {
      if (const auto error = value.get_string().get(text)) return not_json(error);
      text = table_->texts.keep(text);
    }
    for (const std::size_t c : name.columns) {
      TableColumn& column = table_->columns[c];
      if (column.kind == ValueKind::kInteger) return wrong("the string " + shown_text(text), c);
      if (column.kind == ValueKind::kBytes) {
        column.bytes.push_back(text);
        continue;
      }
      const std::optional<float> number = number_of_text(text, wanted_[c].missing);
      if (!number) return "the string " + wrong_number(text, wanted_[c].name);
      column.floats.push_back(*number);
    }
    return std::nullopt;
  }

  Problem read_number(ondemand::value& value, const Name& name) {
    const std::string_view token = without_blanks_behind(value.raw_json_token());
    double number = 0.0;
    if (const auto error = value.get_double().get(number)) return read_nonfinite(value, name, error);
    for (const std::size_t c : name.columns) {
      TableColumn& column = table_->columns[c];
      if (column.kind == ValueKind::kFloat) {
        column.floats.push_back(static_cast<float>(number));
      } else if (column.kind == ValueKind::kInteger) {
        const std::optional<std::int64_t> whole = integer_in(token);
        if (!whole) return wrong("the number " + shown_text(token), c);
        column.integers.push_back(*whole);
      } else {
        column.bytes.push_back(word_of_number(token, number));
      }
    }
    return std::nullopt;
  }

  // A value that isn't JSON. The loop over the object or the array skips it.
  Problem read_nonfinite(ondemand::value& value, const Name& name, simdjson::error_code error) {
    const std::string_view token = without_blanks_behind(value.raw_json_token());
    const std::optional<double> number = token.empty() ? std::nullopt : nonfinite_in(token);
    if (!number || name.columns.empty()) return not_a_value(value, name, error);
    for (const std::size_t c : name.columns) {
      TableColumn& column = table_->columns[c];
      if (column.kind == ValueKind::kInteger) return wrong("the number " + shown_text(token), c);
      if (column.kind == ValueKind::kFloat)
        column.floats.push_back(static_cast<float>(*number));
      else
        column.bytes.push_back(word_of_number(token, *number));
    }
    return std::nullopt;
  }

  Problem read_boolean(ondemand::value& value, const Name& name) {
    bool is_true = false;
    if (const auto error = value.get_bool().get(is_true)) return not_a_value(value, name, error);
    for (const std::size_t c : name.columns) {
      TableColumn& column = table_->columns[c];
      if (column.kind == ValueKind::kFloat)
        column.floats.push_back(is_true ? 1.0F : 0.0F);
      else if (column.kind == ValueKind::kInteger)
        column.integers.push_back(is_true ? 1 : 0);
      else
        column.bytes.push_back(is_true ? "1" : "0");
    }
    return std::nullopt;
  }

  Problem read_null(ondemand::value& value, const Name& name, int depth) {
    bool is_null = false;
    if (const auto error = value.is_null().get(is_null)) return not_a_value(value, name, error);
    if (!is_null) return not_a_value(value, name, simdjson::N_ATOM_ERROR);
    for (const std::size_t c : name.columns) {
      if (depth == 0) continue;
      if (wanted_[c].kind != ValueKind::kFloat) return wrong("null in an array", c);
      table_->columns[c].floats.push_back(std::numeric_limits<float>::quiet_NaN());
    }
    return std::nullopt;
  }

  Problem wrong(const std::string& found, std::size_t c, const std::string& expected = "") const {
    return "found " + found + " in column '" + wanted_[c].name + "', expected " +
           (expected.empty() ? values_of(wanted_[c].kind) : expected) + ": correct the line";
  }

  // The value of a wanted name isn't JSON.
  Problem not_a_value(ondemand::value& value, const Name& name, simdjson::error_code error) const {
    const std::string_view token = without_blanks_behind(value.raw_json_token());
    if (name.columns.empty() || token.empty()) return not_json(error);
    const WantedColumn& column = wanted_[name.columns.front()];
    return "found " + shown_text(token) + " in column '" + column.name + "', which isn't valid JSON, expected " +
           values_of(column.kind) + ": correct the line";
  }

  static std::string values_of(ValueKind kind) {
    static constexpr const char* kValues[] = {"numbers", "whole numbers", "strings"};
    return kValues[static_cast<std::size_t>(kind)];
  }

  // `number` is the token's. An integer of any length keeps its digits.
  std::string_view word_of_number(std::string_view token, double number) const {
    return is_whole(token) && token != "-0" ? in_block(token) : number_word(number, table_->texts);
  }

  // Text in text_, as a view into the block.
  std::string_view in_block(std::string_view text) const { return {block_text_ + (text.data() - text_), text.size()}; }

  const std::vector<WantedColumn> wanted_;
  Name names_;
  ListShape lists_;  // of the value that is read
  ondemand::parser parser_;
  std::string padded_;
  // Of the current record:
  Table* table_ = nullptr;
  std::uint64_t record_ = 0;  // its number, from 1
  const char* block_text_ = nullptr;
  const char* text_ = nullptr;       // the same bytes, with some readable bytes behind them
  std::vector<std::size_t> starts_;  // for each column: where its values begin
};

JsonlDecoder::JsonlDecoder(const std::vector<WantedColumn>& wanted) : reader_(std::make_unique<Reader>(wanted)) {}
JsonlDecoder::~JsonlDecoder() = default;

Status JsonlDecoder::decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table) {
  start_table(reader_->wanted(), table);
  table.records = records.size();
  for (std::size_t r = 0; r < records.size(); ++r)
    if (const Problem problem = reader_->read(block, records[r], table))
      return fail(ErrorCode::kData, place_of(block, r, records[r].begin) + ": " + *problem);
  drop_equal_lengths(table);
  return {};
}

}  // namespace disttrain::input
