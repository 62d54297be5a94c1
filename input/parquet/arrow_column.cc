#include "input/parquet/arrow_column.h"

#include <arrow/array/array_dict.h>
#include <arrow/array/array_nested.h>
#include <arrow/array/array_primitive.h>

#include <limits>
#include <string_view>
#include <type_traits>

#include "input/column_text.h"
#include "input/list_shape.h"
#include "input/number_word.h"

namespace disttrain::input {

namespace {

using arrow::Type;

bool has_elements(Type::type type) {
  return type == Type::LIST || type == Type::LARGE_LIST || type == Type::FIXED_SIZE_LIST;
}

const arrow::DataType& element_type(const arrow::DataType& type) {
  return has_elements(type.id()) ? element_type(*type.field(0)->type()) : type;
}

bool is_float_type(Type::type type) {
  return type == Type::FLOAT || type == Type::DOUBLE;
}

bool is_integer_type(Type::type type) {
  switch (type) {
    case Type::BOOL:
    case Type::UINT8:
    case Type::INT8:
    case Type::UINT16:
    case Type::INT16:
    case Type::UINT32:
    case Type::INT32:
    case Type::UINT64:
    case Type::INT64:
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIME32:
    case Type::TIME64:
    case Type::TIMESTAMP:
    case Type::DURATION:
      return true;
    default:
      return false;
  }
}

bool is_bytes_type(Type::type type) {
  return type == Type::STRING || type == Type::BINARY || type == Type::LARGE_STRING || type == Type::LARGE_BINARY ||
         type == Type::STRING_VIEW || type == Type::BINARY_VIEW || type == Type::FIXED_SIZE_BINARY;
}

// The same values, with binary values in the place of strings.
std::shared_ptr<arrow::ArrayData> without_strings(const arrow::ArrayData& data) {
  const auto same = data.Copy();
  for (auto& child : same->child_data) child = without_strings(*child);
  if (same->dictionary != nullptr) same->dictionary = without_strings(*same->dictionary);
  const arrow::DataType& type = *data.type;
  switch (type.id()) {
    case Type::STRING:
      same->type = arrow::binary();
      break;
    case Type::LARGE_STRING:
      same->type = arrow::large_binary();
      break;
    case Type::STRING_VIEW:
      same->type = arrow::binary_view();
      break;
    case Type::LIST:
      same->type = arrow::list(same->child_data.front()->type);
      break;
    case Type::LARGE_LIST:
      same->type = arrow::large_list(same->child_data.front()->type);
      break;
    case Type::FIXED_SIZE_LIST:
      same->type = arrow::fixed_size_list(same->child_data.front()->type,
                                          static_cast<const arrow::FixedSizeListType&>(type).list_size());
      break;
    case Type::DICTIONARY: {
      const auto& of_words = static_cast<const arrow::DictionaryType&>(type);
      same->type = arrow::dictionary(of_words.index_type(), same->dictionary->type, of_words.ordered());
      break;
    }
    default:
      break;
  }
  return same;
}

// Appends the values [begin, end) of an array. Returns the place of the first value that doesn't fit.
class Appender {
 public:
  Appender(const WantedColumn& wanted, TableColumn& column, Texts& texts)
      : wanted_(wanted), column_(column), texts_(texts) {}

  // Appends the value of a record. Returns false if it doesn't fit.
  bool append_record(const arrow::Array& array, std::int64_t record) {
    lists_.start();
    return !append(array, record, record + 1, false) && lists_.fits(wanted_.shape);
  }

  std::optional<std::int64_t> append(const arrow::Array& array, std::int64_t begin, std::int64_t end, bool is_in_list) {
    switch (array.type_id()) {
      case Type::BOOL: {
        const auto& typed = static_cast<const arrow::BooleanArray&>(array);
        return numbers<bool>(array, begin, end, is_in_list, [&typed](std::int64_t i) { return typed.Value(i); });
      }
      case Type::UINT8:
        return raw<std::uint8_t>(array, begin, end, is_in_list);
      case Type::INT8:
        return raw<std::int8_t>(array, begin, end, is_in_list);
      case Type::UINT16:
        return raw<std::uint16_t>(array, begin, end, is_in_list);
      case Type::INT16:
        return raw<std::int16_t>(array, begin, end, is_in_list);
      case Type::UINT32:
        return raw<std::uint32_t>(array, begin, end, is_in_list);
      case Type::INT32:
      case Type::DATE32:
      case Type::TIME32:
        return raw<std::int32_t>(array, begin, end, is_in_list);
      case Type::UINT64:
        return raw<std::uint64_t>(array, begin, end, is_in_list);
      case Type::INT64:
      case Type::DATE64:
      case Type::TIME64:
      case Type::TIMESTAMP:
      case Type::DURATION:
        return raw<std::int64_t>(array, begin, end, is_in_list);
      case Type::FLOAT:
        return raw<float>(array, begin, end, is_in_list);
      case Type::DOUBLE:
        return raw<double>(array, begin, end, is_in_list);
      case Type::STRING:
      case Type::BINARY:
        return bytes<arrow::BinaryArray>(array, begin, end, is_in_list);
      case Type::LARGE_STRING:
      case Type::LARGE_BINARY:
        return bytes<arrow::LargeBinaryArray>(array, begin, end, is_in_list);
      case Type::STRING_VIEW:
      case Type::BINARY_VIEW:
        return bytes<arrow::BinaryViewArray>(array, begin, end, is_in_list);
      case Type::FIXED_SIZE_BINARY:
        return bytes<arrow::FixedSizeBinaryArray>(array, begin, end, is_in_list);
      case Type::DICTIONARY:
        return dictionary(static_cast<const arrow::DictionaryArray&>(array), begin, end, is_in_list);
      case Type::LIST:
        return lists(static_cast<const arrow::ListArray&>(array), begin, end, is_in_list);
      case Type::LARGE_LIST:
        return lists(static_cast<const arrow::LargeListArray&>(array), begin, end, is_in_list);
      case Type::FIXED_SIZE_LIST:
        return lists(static_cast<const arrow::FixedSizeListArray&>(array), begin, end, is_in_list);
      default:
        return begin;
    }
  }

 private:
  template <typename T>
  std::optional<std::int64_t> raw(const arrow::Array& array, std::int64_t begin, std::int64_t end,
                                  bool is_in_list) const {
    const T* const values = array.data()->GetValues<T>(1);
    return numbers<T>(array, begin, end, is_in_list, [values](std::int64_t i) { return values[i]; });
  }

  template <typename T, typename ValueAt>
  std::optional<std::int64_t> numbers(const arrow::Array& array, std::int64_t begin, std::int64_t end, bool is_in_list,
                                      const ValueAt& value_at) const {
    const bool has_nulls = array.null_count() > 0;
    if (column_.kind == ValueKind::kFloat) {
      std::vector<float>& out = column_.floats;
      if (!has_nulls) {
        const std::size_t old = out.size();
        out.resize(old + static_cast<std::size_t>(end - begin));
        for (std::int64_t i = begin; i < end; ++i)
          out[old + static_cast<std::size_t>(i - begin)] = static_cast<float>(value_at(i));
        return std::nullopt;
      }
      for (std::int64_t i = begin; i < end; ++i) {
        if (!array.IsNull(i))
          out.push_back(static_cast<float>(value_at(i)));
        else if (is_in_list)
          out.push_back(std::numeric_limits<float>::quiet_NaN());
      }
      return std::nullopt;
    }
    for (std::int64_t i = begin; i < end; ++i) {
      if (has_nulls && array.IsNull(i)) {
        if (is_in_list) return i;
        continue;
      }
      const T value = value_at(i);
      if (column_.kind == ValueKind::kBytes) {
        column_.bytes.push_back(number_word(value, texts_));
      } else if constexpr (std::is_integral_v<T>) {
        if constexpr (std::is_same_v<T, std::uint64_t>)
          if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return i;
        column_.integers.push_back(static_cast<std::int64_t>(value));
      }
    }
    return std::nullopt;
  }

  template <typename Typed>
  std::optional<std::int64_t> bytes(const arrow::Array& array, std::int64_t begin, std::int64_t end,
                                    bool is_in_list) const {
    const auto& typed = static_cast<const Typed&>(array);
    for (std::int64_t i = begin; i < end; ++i) {
      const bool is_null = array.IsNull(i);
      if (is_null && !is_in_list) continue;
      if (is_null && column_.kind == ValueKind::kBytes) return i;
      if (column_.kind == ValueKind::kBytes) {
        column_.bytes.push_back(typed.GetView(i));
        continue;
      }
      const std::optional<float> number =
          is_null ? std::numeric_limits<float>::quiet_NaN() : number_of_text(typed.GetView(i), wanted_.missing);
      if (!number) return i;
      column_.floats.push_back(*number);
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> dictionary(const arrow::DictionaryArray& array, std::int64_t begin, std::int64_t end,
                                         bool is_in_list) {
    const arrow::Array& words = *array.dictionary();
    for (std::int64_t i = begin; i < end; ++i) {
      if (array.IsNull(i)) {
        if (is_in_list && column_.kind != ValueKind::kFloat) return i;
        if (is_in_list) column_.floats.push_back(std::numeric_limits<float>::quiet_NaN());
        continue;
      }
      const std::int64_t word = array.GetValueIndex(i);
      if (word < 0 || word >= words.length() || append(words, word, word + 1, is_in_list)) return i;
    }
    return std::nullopt;
  }

  template <typename Lists>
  std::optional<std::int64_t> lists(const Lists& array, std::int64_t begin, std::int64_t end, bool is_in_list) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (array.IsNull(i)) {
        if (is_in_list) return i;
        continue;
      }
      const std::int64_t first = array.value_offset(i);
      lists_.note_list(depth_, static_cast<std::uint64_t>(array.value_length(i)));
      ++depth_;
      if (!has_elements(array.value_type()->id()) && array.value_length(i) > 0) lists_.note_value(depth_);
      if (append(*array.values(), first, first + array.value_length(i), true)) return i;
      --depth_;
    }
    return std::nullopt;
  }

  const WantedColumn& wanted_;
  TableColumn& column_;
  Texts& texts_;
  ListShape lists_;        // of the record that is appended
  std::size_t depth_ = 0;  // the number of lists around the values that are appended
};

}  // namespace

std::optional<std::string> unfit_type(const arrow::DataType& type, ValueKind kind) {
  const arrow::DataType* element = &element_type(type);
  if (element->id() == Type::DICTIONARY)
    element = static_cast<const arrow::DictionaryType*>(element)->value_type().get();
  const bool is_number = is_float_type(element->id()) || is_integer_type(element->id());
  const bool fits =
      kind == ValueKind::kInteger ? is_integer_type(element->id()) : is_number || is_bytes_type(element->id());
  if (fits) return std::nullopt;
  static constexpr const char* kExpected[] = {"numbers, or texts of numbers", "whole numbers",
                                              "numbers, strings or binary values"};
  return "has the type " + type.ToString() + ", expected " + kExpected[static_cast<std::size_t>(kind)];
}

arrow::Status check_array(const arrow::Array& array) {
  return arrow::MakeArray(without_strings(*array.data()))->ValidateFull();
}

std::optional<std::int64_t> append_array(const arrow::Array& array, const WantedColumn& wanted, TableColumn& column,
                                         Texts& texts) {
  Appender appender(wanted, column, texts);
  if (!has_elements(array.type_id()) && array.null_count() == 0) {
    column.lengths.insert(column.lengths.end(), static_cast<std::size_t>(array.length()), 1);
    return appender.append(array, 0, array.length(), false);
  }
  for (std::int64_t i = 0; i < array.length(); ++i) {
    const std::size_t before = values_in(column);
    if (!appender.append_record(array, i)) return i;
    column.lengths.push_back(static_cast<std::uint32_t>(values_in(column) - before));
  }
  return std::nullopt;
}

}  // namespace disttrain::input
