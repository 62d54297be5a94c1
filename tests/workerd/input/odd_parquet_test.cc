// Odd Parquet files: types, nulls, dictionaries and lists.
#include <cmath>
#include <limits>

#include "tests/workerd/input/odd_files.h"

namespace disttrain::input {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Numbers = std::vector<std::optional<double>>;
using Wholes = std::vector<std::optional<std::int64_t>>;
using Texts = std::vector<std::optional<std::string>>;

ParquetColumn doubles(const std::string& name, const Numbers& values) {
  return parquet_column<arrow::DoubleBuilder>(name, values);
}
ParquetColumn wholes(const std::string& name, const Wholes& values) {
  return parquet_column<arrow::Int64Builder>(name, values);
}
ParquetColumn strings(const std::string& name, const Texts& values) {
  return parquet_column<arrow::StringBuilder>(name, values);
}
// The column as another type of Arrow.
ParquetColumn as(const ParquetColumn& column, const std::shared_ptr<arrow::DataType>& type) {
  return {column.name, *column.values->View(type)};
}
ParquetColumn words(const std::string& name, const Texts& values) {
  arrow::StringDictionaryBuilder builder;
  for (const auto& value : values) EXPECT_TRUE((value ? builder.Append(*value) : builder.AppendNull()).ok());
  return {name, *builder.Finish()};
}
ParquetColumn decimals(const std::string& name) {
  arrow::Decimal128Builder builder(arrow::decimal128(10, 2));
  for (const int value : {150, 250}) EXPECT_TRUE(builder.Append(arrow::Decimal128(value)).ok());
  return {name, *builder.Finish()};
}

class OddParquet : public testing::Test {
 protected:
  // Each of two records has x = 1.5 and 2.5, c = red and green, and y = 0 and 1, unless a column is given.
  void expect(const std::string& what, const std::vector<ParquetColumn>& columns, const std::string& expected) {
    ++count_;
    std::vector<ParquetColumn> all = columns;
    const auto add = [&all](const ParquetColumn& column) {
      for (const ParquetColumn& known : all)
        if (known.name == column.name) return;
      all.push_back(column);
    };
    add(doubles("x", {1.5, 2.5}));
    add(strings("c", {"red", "green"}));
    add(wholes("y", {0, 1}));
    write_parquet(folder_ / "odd", all, 2);
    Source source = input::source(DataFormat::kParquet, folder_, "odd");
    source.columns = usual_columns();
    source.missing = {"?"};
    source.parquet = &parquet_functions();
    source.memory = std::uint64_t{1} << 30;
    expect_given(given_of(load_dataset(source)), expected, what);
  }

  Folder folder_;
  int count_ = 0;
};

TEST_F(OddParquet, Files) {
  expect("the usual", {}, "1.5 2.5 / 1 2 / 0 1");
  expect("more columns", {strings("z", {"a", "b"})}, "1.5 2.5 / 1 2 / 0 1");
  expect("whole numbers", {wholes("x", {-3, 4})}, "-3 4 / 1 2 / 0 1");
  expect("int8", {parquet_column<arrow::Int8Builder, std::int8_t>("x", {-128, 127})}, "-128 127 / 1 2 / 0 1");
  expect("uint64", {parquet_column<arrow::UInt64Builder, std::uint64_t>("x", {1, 1ull << 63})},
         "1 9.22337e+18 / 1 2 / 0 1");
  expect("booleans", {parquet_column<arrow::BooleanBuilder, bool>("x", {true, false})}, "1 0 / 1 2 / 0 1");
  expect("booleans as labels", {parquet_column<arrow::BooleanBuilder, bool>("y", {true, false})},
         "1.5 2.5 / 1 2 / 1 0");
  expect("float32", {parquet_column<arrow::FloatBuilder, float>("x", {0.1F, 1e38F})}, "0.1 1e+38 / 1 2 / 0 1");
  expect("a double that is too large", {doubles("x", {1, 1e39})}, "!odd|record 1|column 'x'|float32");
  expect("texts as numbers", {strings("x", {"1.5", " 2\n"})}, "1.5 2 / 1 2 / 0 1");
  expect("a text that isn't a number", {strings("x", {"1.5", "many"})}, "!odd|record 1|'many' in column 'x'");
  expect("a dictionary", {words("c", {"green", "red"})}, "1.5 2.5 / 2 1 / 0 1");
  expect("a dictionary with a null", {words("c", {"green", std::nullopt})}, "1.5 2.5 / 2 0 / 0 1");
  expect("a dictionary of numbers as texts", {words("x", {"7", "8"})}, "7 8 / 1 2 / 0 1");
  expect("a null as a number", {doubles("x", {1, std::nullopt})}, "!odd|record 1|no value in column 'x'");
  expect("a null as a whole number", {wholes("x", {std::nullopt, 1})}, "!odd|record 0|no value in column 'x'");
  expect("a null as a word", {strings("c", {"red", std::nullopt})}, "1.5 2.5 / 1 0 / 0 1");
  expect("a null as a label", {wholes("y", {0, std::nullopt})}, "!odd|record 1|column 'y'");
  expect("NaN", {doubles("x", {1, kNan})}, "!odd|record 1|no value in column 'x'");
  expect("an infinity", {doubles("x", {-kInfinity, 1})}, "!odd|record 0|-infinity in column 'x'");
  expect("fractions as labels", {doubles("y", {0.5, -2})}, "1.5 2.5 / 1 2 / 0.5 -2");
  expect("whole doubles as labels", {doubles("y", {1, 0})}, "1.5 2.5 / 1 2 / 1 0");
  expect("negative labels", {wholes("y", {-100, 1})}, "1.5 2.5 / 1 2 / -100 1");
  expect("texts as labels", {strings("y", {"yes", "no"})}, "1.5 2.5 / 1 2 / 1 0");
  expect("labels of numbers and words", {strings("y", {"1", "n/a"})}, "!odd|record 1|'n/a' in column 'y'");
  expect("NaN as a label", {doubles("y", {0, kNan})}, "!odd|record 1|no label in column 'y'");
  expect("a date", {as(parquet_column<arrow::Int32Builder, std::int32_t>("x", {0, 365}), arrow::date32())},
         "0 365 / 1 2 / 0 1");
  expect("a timestamp", {as(wholes("x", {0, 1000}), arrow::timestamp(arrow::TimeUnit::MILLI))}, "0 1000 / 1 2 / 0 1");
  expect("decimals", {decimals("x")}, "!odd|column 'x'|decimal128(10, 2)");
  expect("lists of one",
         {list_column<arrow::DoubleBuilder, double>(
             "x", {{{"x", std::vector<double>{1}}}, {{"x", std::vector<double>{2}}}}, 0)},
         "1 2 / 1 2 / 0 1");
  expect("a list of two",
         {list_column<arrow::DoubleBuilder, double>(
             "x", {{{"x", std::vector<double>{1}}}, {{"x", std::vector<double>{2, 3}}}}, 0)},
         "!odd|record 1|2 values in column 'x'");
  expect("binary words", {parquet_column<arrow::BinaryBuilder, std::string>("c", {"red", "gr\xFCn"})},
         "!odd|record 1|column 'c'|0xfc");
  expect("blanks around words", {strings("c", {" red", "green\r\n"})}, "1.5 2.5 / 1 2 / 0 1");
  expect("numbers as words", {wholes("c", {1, 2})}, "1.5 2.5 / 0 0 / 0 1");
  expect("nulls alone", {parquet_column<arrow::NullBuilder, std::nullptr_t>("x", {std::nullopt, std::nullopt})},
         "!odd|column 'x'|null");
  expect("a column in another case", {doubles("X", {1, 2})}, "1.5 2.5 / 1 2 / 0 1");
  EXPECT_GE(count_, 20);
}

TEST_F(OddParquet, ListsInListsHaveTheShapeOfTheColumn) {
  using List = std::vector<double>;
  using Lists = std::vector<std::optional<List>>;
  const auto given = [this](const Lists& lists, const std::vector<std::uint32_t>& shape) {
    const auto numbers = std::make_shared<arrow::DoubleBuilder>();
    const auto inner = std::make_shared<arrow::ListBuilder>(arrow::default_memory_pool(), numbers);
    arrow::ListBuilder outer(arrow::default_memory_pool(), inner);
    for (int record = 0; record < 2; ++record) {
      EXPECT_TRUE(outer.Append().ok());
      for (const auto& list : lists) {
        EXPECT_TRUE((list ? inner->Append() : inner->AppendNull()).ok());
        EXPECT_TRUE(numbers->AppendValues(list.value_or(std::vector<double>())).ok());
      }
    }
    write_parquet(folder_ / "f", {{"x", *outer.Finish()}, wholes("y", {0, 1})}, 2);
    Source source = input::source(DataFormat::kParquet, folder_, "f");
    source.columns = {column_section("x", ColumnKind::kNumeric), column_section("y", ColumnKind::kLabel)};
    source.columns[0].shape = shape;
    source.parquet = &parquet_functions();
    return given_of(load_dataset(source));
  };
  EXPECT_THAT(given({List{1, 2, 3}, List{4, 5, 6}}, {2, 3}).inputs,
              testing::ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(given({List{1, 2}, List{3, 4}, List{5, 6}}, {6}).error, "");
  EXPECT_EQ(given({List{1, 2, 3, 4, 5, 6}}, {2, 3}).error, "");
  for (const Lists& unfit : {Lists{List{1, 2}, List{3, 4}, List{5, 6}}, Lists{List{1}, List{2, 3, 4, 5, 6}},
                             Lists{List{1, 2, 3, 4, 5, 6}, std::nullopt}})
    EXPECT_THAT(
        given(unfit, {2, 3}).error,
        testing::AllOf(testing::HasSubstr("record 0: found "),
                       testing::HasSubstr("in column 'x', expected finite numbers in lists of the shape [2, 3], or one "
                                          "list of all values, and no list within it that is null: correct the "
                                          "record")));
  EXPECT_THAT(
      given({List{1, 2}, std::nullopt}, {2}).error,
      testing::HasSubstr("in column 'x', expected finite numbers, and no list within it that is null: correct"));
}

// Spark, Hive and Impala write timestamps so.
TEST_F(OddParquet, Int96) {
  arrow::TimestampBuilder builder(arrow::timestamp(arrow::TimeUnit::NANO), arrow::default_memory_pool());
  for (const std::int64_t value : {0, 5}) ASSERT_TRUE(builder.Append(value).ok());
  const auto array = *builder.Finish();
  const auto labels = wholes("y", {0, 1}).values;
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("x", array->type()), arrow::field("y", labels->type())}), {array, labels});
  const auto file = *arrow::io::FileOutputStream::Open(folder_ / "f");
  const auto properties = parquet::ArrowWriterProperties::Builder().enable_deprecated_int96_timestamps()->build();
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, 2,
                                         parquet::default_writer_properties(), properties)
                  .ok());
  ASSERT_TRUE(file->Close().ok());
  Source source = input::source(DataFormat::kParquet, folder_, "f");
  source.columns = {column_section("x", ColumnKind::kNumeric), column_section("y", ColumnKind::kLabel)};
  source.parquet = &parquet_functions();
  expect_given(given_of(load_dataset(source)), "0 5 /  / 0 1", "int96");
}

}  // namespace
}  // namespace disttrain::input
