// Odd Parquet files: types, nulls, dictionaries and lists.
#include <atomic>
#include <cmath>
#include <limits>

#include "input/parquet/parquet_file.h"
#include "tests/input/odd_files.h"

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
// Each value as a list of its own.
ParquetColumn in_lists(const ParquetColumn& column) {
  arrow::Int32Builder offsets;
  for (std::int32_t i = 0; i <= column.values->length(); ++i) EXPECT_TRUE(offsets.Append(i).ok());
  return {column.name, *arrow::ListArray::FromArrays(**offsets.Finish(), *column.values)};
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

// Spark, Hive and Impala write timestamps so. The file has two records in a row group.
class Int96 : public OddParquet {
 protected:
  // `x` has timestamps.
  void write(const std::shared_ptr<arrow::Array>& x) {
    const auto labels = wholes("y", Wholes(static_cast<std::size_t>(x->length()), 1)).values;
    const auto table = arrow::Table::Make(
        arrow::schema({arrow::field("x", x->type()), arrow::field("y", labels->type())}), {x, labels});
    const auto file = *arrow::io::FileOutputStream::Open(folder_ / "f");
    const auto properties = parquet::ArrowWriterProperties::Builder().enable_deprecated_int96_timestamps()->build();
    EXPECT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, 2,
                                           parquet::default_writer_properties(), properties)
                    .ok());
    EXPECT_TRUE(file->Close().ok());
  }
  Given given(const std::shared_ptr<arrow::Array>& x) {
    write(x);
    Source source = input::source(DataFormat::kParquet, folder_, "f");
    source.columns = {column_section("x", ColumnKind::kNumeric), column_section("y", ColumnKind::kLabel)};
    source.columns[0].missing = 0.0;
    source.parquet = &parquet_functions();
    return given_of(load_dataset(source));
  }
  static std::shared_ptr<arrow::Array> timestamps(arrow::TimeUnit::type unit, const Wholes& values) {
    return as(wholes("x", values), arrow::timestamp(unit)).values;
  }
};

constexpr std::int64_t kBeginOfLastDayOf9999 = 253'402'214'400;  // in seconds since 1970

TEST_F(Int96, BecomesNanoseconds) {
  expect_given(given(timestamps(arrow::TimeUnit::NANO, {0, 5})), "0 5 /  / 1 1", "nanoseconds");
  expect_given(given(timestamps(arrow::TimeUnit::SECOND, {9'223'372'036, std::nullopt, -9'223'372'036, -1})),
               "9.22337e+18 0 -9.22337e+18 -1e+09 /  / 1 1 1 1", "the first and the last second");
}

TEST_F(Int96, TimestampsThatWouldWrapAreRefused) {
  const auto error = [this](const Wholes& seconds) {
    return given(timestamps(arrow::TimeUnit::SECOND, seconds)).error;
  };
  EXPECT_THAT(error({0, std::nullopt, 0, kBeginOfLastDayOf9999}),
              testing::AllOf(testing::HasSubstr("/f\", record 3: found the timestamp 9999-12-31 of the type INT96 in "
                                                "column 'x', expected one from 1677-09-21 to 2262-04-11"),
                             testing::HasSubstr("write the column as a timestamp of microseconds")));
  EXPECT_THAT(error({9'223'372'037, 0}), testing::HasSubstr("record 0: found the timestamp 2262-04-11"));
  EXPECT_THAT(error({0, -9'223'372'037}), testing::HasSubstr("record 1: found the timestamp 1677-09-21"));
}

TEST_F(Int96, TimestampsWithinListsAreRefusedToo) {
  const auto list = [](const Wholes& seconds) {
    return in_lists({"x", timestamps(arrow::TimeUnit::SECOND, seconds)}).values;
  };
  expect_given(given(list({0, -1})), "0 -1e+09 /  / 1 1", "lists of one");
  EXPECT_THAT(given(list({0, 0, kBeginOfLastDayOf9999})).error,
              testing::HasSubstr("record 2: found the timestamp 9999-12-31"));
}

TEST_F(Int96, ColumnOfARowGroupIsCheckedOnce) {
  write(timestamps(arrow::TimeUnit::SECOND, {0, 0, 0, kBeginOfLastDayOf9999}));
  const std::vector<WantedColumn> wanted = {{"y", ValueKind::kInteger}, {"x", ValueKind::kFloat}};
  CheckedTimestamps checked;
  const auto file = ParquetFile::open(folder_ / "f", wanted, {.checked = &checked});
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_TRUE((*file)->start(0));
  EXPECT_TRUE(checked.has(0, 1));
  EXPECT_FALSE(checked.has(0, 0)) << "it has integers";
  EXPECT_FALSE((*file)->start(1));
  EXPECT_FALSE(checked.has(1, 1));
  EXPECT_TRUE((*file)->start(1, 0, 1)) << "without the timestamps";
  checked.add(1, 1);
  EXPECT_TRUE((*file)->start(1)) << "the column isn't decoded again";
}

TEST_F(Int96, BytesOfTheCheckAreNotCounted) {
  write(timestamps(arrow::TimeUnit::SECOND, {0, 1, 2, 3}));
  CheckedTimestamps checked;
  const auto bytes_read = [&] {
    std::atomic<std::uint64_t> bytes = 0;
    const auto file = ParquetFile::open(folder_ / "f", {{"x", ValueKind::kFloat}},
                                        {.counts = {.bytes_read = &bytes}, .checked = &checked});
    for (std::size_t group = 0; group < 2; ++group) {
      EXPECT_TRUE((*file)->start(group));
      Table table;
      while ((*file)->next(table).value()) {
      }
    }
    return bytes.load();
  };
  const std::uint64_t with_check = bytes_read();
  ASSERT_TRUE(checked.has(0, 0) && checked.has(1, 0));
  EXPECT_GT(with_check, 0U);
  EXPECT_EQ(with_check, bytes_read());
}

TEST_F(Int96, CheckEndsWhenItIsCancelled) {
  write(timestamps(arrow::TimeUnit::SECOND, {0, 1}));
  const auto file = ParquetFile::open(folder_ / "f", {{"y", ValueKind::kInteger}, {"x", ValueKind::kFloat}},
                                      {.is_cancelled = [] { return true; }});
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_TRUE((*file)->start(0, 0, 1)) << "without the timestamps";
  const Status started = (*file)->start(0);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kTemporary);
}

// Only a column of words needs UTF-8, and says so.
TEST_F(OddParquet, StringsThatArentUtf8) {
  const std::string latin1 = "gr\xFCn";
  expect("a word", {strings("c", {"red", latin1})},
         "!odd|record 1|in column 'c' has the byte 0xfc, which isn't UTF-8: convert the file");
  expect("a dictionary", {words("c", {"red", latin1})}, "!odd|record 1|in column 'c' has the byte 0xfc");
  expect("a label", {strings("y", {"red", latin1})}, "!odd|record 1|in column 'y' has the byte 0xfc");
  expect("a number", {strings("x", {"1", latin1})}, "!odd|record 1|in column 'x', expected a finite number");
  for (const auto& column :
       {strings("c", {"red", latin1}), words("c", {"red", latin1}), in_lists(strings("c", {"red", latin1}))}) {
    write_parquet(folder_ / "f", {column}, 2);
    auto file = ParquetFile::open(folder_ / "f", {{"c", ValueKind::kBytes}});
    ASSERT_TRUE(file.has_value()) << file.error().message;
    ASSERT_TRUE((*file)->start(0));
    Table table;
    const Result<bool> more = (*file)->next(table);
    ASSERT_TRUE(more.has_value()) << more.error().message;
    EXPECT_THAT(table.columns[0].bytes, testing::ElementsAre("red", latin1));
  }
}

}  // namespace
}  // namespace disttrain::input
