// Parquet's column readers give some thousand plain numbers at a time, and the encoder writes them into the rows while
// they are in the processor's cache. Arrow's arrays would be one more copy of the values, and their validation one more
// pass. They remain for words, dictionaries, lists and rarer types.
#include "input/parquet/plain_column.h"

#include <parquet/exception.h>
#include <parquet/types.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "input/number_word.h"

namespace disttrain::input {

namespace {

// The texts of the numbers of one table. Equal numbers that are near each other get the same text.
template <typename T>
class NumberWords {
 public:
  explicit NumberWords(Texts& texts) : texts_(texts) {}

  std::string_view word_of(T number) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof(number));
    Place& place = places_[(bits * 0x9E3779B97F4A7C15u) >> 56];
    if (place.word.data() == nullptr || place.bits != bits) place = {bits, number_word(number, texts_)};
    return place.word;
  }

 private:
  struct Place {
    std::uint64_t bits = 0;
    std::string_view word;
  };

  Texts& texts_;
  std::array<Place, 256> places_;
};

template <typename Physical>
class TypedColumn final : public PlainColumn {
 public:
  using T = typename Physical::c_type;

  explicit TypedColumn(bool may_be_null) : may_be_null_(may_be_null) {}

  void start(std::shared_ptr<parquet::ColumnReader> column) override {
    column_ = std::move(column);
    reader_ = static_cast<parquet::TypedColumnReader<Physical>*>(column_.get());
  }

  void read(std::uint64_t records, TableColumn& to, Texts& texts) override {
    if (may_be_null_) levels_.resize(records);
    std::size_t values = 0;
    if (to.kind == ValueKind::kFloat) {
      to.floats.resize(records);
      if constexpr (std::is_same_v<T, float>) {
        values = decode(records, to.floats.data());
      } else {
        values_.resize(records);
        values = decode(records, values_.data());
        for (std::size_t i = 0; i < values; ++i) to.floats[i] = static_cast<float>(values_[i]);
      }
      to.floats.resize(values);
    } else {
      values_.resize(records);
      values = decode(records, values_.data());
      take(values, to, texts);
    }
    to.lengths.clear();
    if (values < records)
      for (const std::int16_t level : levels_) to.lengths.push_back(level > 0 ? 1 : 0);
  }

 private:
  // Returns the number of values, which is less than `records` by the number of nulls.
  std::size_t decode(std::uint64_t records, T* to) {
    std::uint64_t read = 0;
    std::size_t values = 0;
    while (read < records) {
      std::int64_t its_values = 0;
      const std::int64_t levels =
          reader_->ReadBatch(static_cast<std::int64_t>(records - read), may_be_null_ ? levels_.data() + read : nullptr,
                             nullptr, to + values, &its_values);
      if (levels <= 0) throw parquet::ParquetException("a column has fewer values than its row group has rows");
      // A damaged page may have fewer values than its levels say.
      const std::int64_t expected =
          may_be_null_ ? std::count(levels_.data() + read, levels_.data() + read + levels, std::int16_t{1}) : levels;
      if (its_values != expected) throw parquet::ParquetException("a page has fewer values than its header says");
      read += static_cast<std::uint64_t>(levels);
      values += static_cast<std::size_t>(its_values);
    }
    return values;
  }

  void take(std::size_t values, TableColumn& to, Texts& texts) {
    if (to.kind == ValueKind::kInteger) {
      if constexpr (std::is_integral_v<T>)
        to.integers.assign(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(values));
      return;
    }
    NumberWords<T> words(texts);
    to.bytes.resize(values);
    for (std::size_t i = 0; i < values; ++i) to.bytes[i] = words.word_of(values_[i]);
  }

  const bool may_be_null_;
  std::shared_ptr<parquet::ColumnReader> column_;
  parquet::TypedColumnReader<Physical>* reader_ = nullptr;
  // These members keep their memory from one call to the next.
  std::vector<std::int16_t> levels_;  // of each record: 0 if it is null
  std::vector<T> values_;
};

// Whether the values are those of their physical type.
bool has_bare_type(const parquet::ColumnDescriptor& column, int bits) {
  const auto& logical = column.logical_type();
  if (logical == nullptr || logical->is_none()) return true;
  if (!logical->is_int()) return false;
  const auto& type = static_cast<const parquet::IntLogicalType&>(*logical);
  return type.is_signed() && type.bit_width() == bits;
}

}  // namespace

std::unique_ptr<PlainColumn> PlainColumn::make(const parquet::ColumnDescriptor& column) {
  const bool is_flat = column.max_repetition_level() == 0 && column.max_definition_level() <= 1 &&
                       column.path()->ToDotVector().size() == 1;
  if (!is_flat) return nullptr;
  const bool may_be_null = column.max_definition_level() == 1;
  switch (column.physical_type()) {
    case parquet::Type::FLOAT:
      return has_bare_type(column, 32) ? std::make_unique<TypedColumn<parquet::FloatType>>(may_be_null) : nullptr;
    case parquet::Type::DOUBLE:
      return has_bare_type(column, 64) ? std::make_unique<TypedColumn<parquet::DoubleType>>(may_be_null) : nullptr;
    case parquet::Type::INT32:
      return has_bare_type(column, 32) ? std::make_unique<TypedColumn<parquet::Int32Type>>(may_be_null) : nullptr;
    case parquet::Type::INT64:
      return has_bare_type(column, 64) ? std::make_unique<TypedColumn<parquet::Int64Type>>(may_be_null) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace disttrain::input
