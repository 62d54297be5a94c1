// tests/data/parquet/make.py writes the files.
#include "input/parquet/parquet_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <tuple>

#include "tests/input/blocks.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFolder = DISTTRAIN_TEST_DATA "/parquet/";

class Parquet : public testing::TestWithParam<const char*> {
 protected:
  // Reads one row group of the file, or returns the error.
  std::string read(std::size_t group, const std::vector<WantedColumn>& wanted) {
    auto file = ParquetFile::open(kFolder + GetParam(), wanted);
    if (!file) return error_of(file);
    EXPECT_THAT((*file)->groups(), ElementsAre(3, 2));
    if (const Status started = (*file)->start(group); !started) return error_of(started);
    const Result<bool> more = (*file)->next(table_);
    if (!more.has_value()) return error_of(more);
    EXPECT_TRUE(*more);
    Table rest;
    EXPECT_FALSE(*(*file)->next(rest));
    EXPECT_EQ(table_.records, (*file)->groups()[group]);
    return "";
  }

  Table table_;
};

INSTANTIATE_TEST_SUITE_P(Files, Parquet, testing::Values("table.parquet", "table.zstd.parquet"));

TEST_P(Parquet, NumbersBecomeFloatsOrIntegers) {
  ASSERT_EQ(read(0, {{"age", ValueKind::kInteger},
                     {"age", ValueKind::kFloat},
                     {"small", ValueKind::kFloat},
                     {"weight", ValueKind::kFloat},
                     {"is_new", ValueKind::kInteger},
                     {"day", ValueKind::kInteger}}),
            "");
  EXPECT_THAT(table_.columns[0].integers, ElementsAre(39, -3));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(1, 1, 0));
  EXPECT_THAT(table_.columns[1].floats, ElementsAre(39, -3));
  EXPECT_THAT(table_.columns[2].floats, ElementsAre(1, 2, 3));
  EXPECT_THAT(table_.columns[2].lengths, IsEmpty());
  EXPECT_THAT(table_.columns[3].floats, ElementsAre(0.5F, 2.25F));
  EXPECT_THAT(table_.columns[3].lengths, ElementsAre(1, 0, 1));
  EXPECT_THAT(table_.columns[4].integers, ElementsAre(1, 0, 1));
  EXPECT_THAT(table_.columns[5].integers, ElementsAre(0, 1, 2));
  ASSERT_EQ(read(1, {{"age", ValueKind::kInteger}, {"small", ValueKind::kInteger}, {"weight", ValueKind::kFloat}}), "");
  EXPECT_THAT(table_.columns[0].integers, ElementsAre(7, std::int64_t{1} << 40));
  EXPECT_THAT(table_.columns[1].integers, ElementsAre(4, 255));
  EXPECT_THAT(table_.columns[2].floats, ElementsAre(-1, 0));
}

// The table lives longer than the file, which read() closes.
TEST_P(Parquet, StringsBecomeBytes) {
  ASSERT_EQ(read(0, {{"job", ValueKind::kBytes}, {"kind", ValueKind::kBytes}}), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("clerk", ""));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(1, 1, 0));
  EXPECT_THAT(table_.columns[1].bytes, ElementsAre("a", "b", "a"));
  ASSERT_EQ(read(1, {{"kind", ValueKind::kBytes}}), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("a"));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(0, 1));
}

// So that numbers may be categories and labels.
TEST_P(Parquet, NumbersBecomeTextInAColumnOfBytes) {
  ASSERT_EQ(read(1, {{"age", ValueKind::kBytes}, {"small", ValueKind::kBytes}}), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("7", "1099511627776"));
  EXPECT_THAT(table_.columns[1].bytes, ElementsAre("4", "255"));
}

TEST_P(Parquet, ListsGiveTheirElements) {
  const std::vector<WantedColumn> wanted = {
      {"pixels", ValueKind::kFloat}, {"words", ValueKind::kBytes}, {"point", ValueKind::kInteger}};
  ASSERT_EQ(read(0, wanted), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(1, 2));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(2, 0, 0));
  EXPECT_THAT(table_.columns[1].bytes, ElementsAre("x", "y", "z"));
  EXPECT_THAT(table_.columns[1].lengths, ElementsAre(1, 2, 0));
  EXPECT_THAT(table_.columns[2].integers, ElementsAre(1, 2, 1, 2, 1, 2));
  ASSERT_EQ(read(1, {wanted[0]}), "");
  ASSERT_EQ(table_.columns[0].floats.size(), 3U);
  EXPECT_TRUE(std::isnan(table_.columns[0].floats[1]));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(2, 1));
}

TEST_P(Parquet, ColumnsThatDontFitAreRefused) {
  EXPECT_THAT(read(0, {{"size", ValueKind::kFloat}}),
              HasSubstr("has no column 'size', or two of them; it has 13 columns: 'age'"));
  EXPECT_THAT(read(0, {{"job", ValueKind::kInteger}}),
              HasSubstr("column 'job': it has the type string, expected whole numbers"));
  EXPECT_THAT(read(0, {{"weight", ValueKind::kInteger}}), HasSubstr("has the type double, expected whole numbers"));
  EXPECT_THAT(read(0, {{"price", ValueKind::kFloat}}), HasSubstr("decimal128(5, 2), expected numbers"));
}

TEST_P(Parquet, ValuesThatDontFitNameTheirRecord) {
  ASSERT_EQ(read(0, {{"infinite", ValueKind::kFloat}, {"large", ValueKind::kInteger}}), "");
  ASSERT_EQ(read(1, {{"infinite", ValueKind::kFloat}}), "") << "ColumnEncoder refuses it, as that of any format";
  EXPECT_THAT(read(1, {{"large", ValueKind::kInteger}}),
              HasSubstr("record 4: found 9223372036854775808 in column 'large'"));
}

TEST_P(Parquet, DamagedFilesAreRefused) {
  const Folder folder;
  const std::vector<WantedColumn> wanted = {{"age", ValueKind::kFloat}, {"job", ValueKind::kBytes}};
  const std::string whole = read_whole(kFolder + GetParam());
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 97)
    EXPECT_THAT(error_of(ParquetFile::open(folder.write("a", whole.substr(0, bytes)), wanted)),
                HasSubstr("can't be read as a Parquet file"))
        << bytes;
  // Bits that change. Parquet has no checksum by default, so some changes give other values.
  for (std::size_t at = 0; at < whole.size(); at += 23) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    const auto file = ParquetFile::open(folder.write("a", damaged), wanted);
    if (!file) continue;
    for (std::size_t group = 0; group < (*file)->groups().size(); ++group) {
      if (!(*file)->start(group)) continue;
      for (Result<bool> more = true; more.has_value() && *more;) more = (*file)->next(table_);
    }
  }
  EXPECT_EQ(ParquetFile::open(kFolder + "absent", wanted).error().code, ErrorCode::kNoInput);
}

struct TypedColumn {
  const char* name;
  const char* takers;  // f: floats, t: floats, but the second record's text isn't a number, i: integers, b: bytes
  std::string first;   // the first record's value as bytes
};

class ParquetType : public testing::TestWithParam<TypedColumn> {
 protected:
  // The error of reading the column as values of this kind; "" if there is none.
  std::string read(ValueKind kind) {
    const auto file = ParquetFile::open(kFolder + "types.parquet", {{GetParam().name, kind}});
    if (!file) return error_of(file);
    if (const Status started = (*file)->start(0); !started) return error_of(started);
    const Result<bool> more = (*file)->next(table_);
    return more.has_value() ? "" : error_of(more);
  }

  Table table_;
};

// docs/data.md lists these types.
INSTANTIATE_TEST_SUITE_P(
    Each, ParquetType,
    testing::Values(TypedColumn{"int8", "fib", "1"}, TypedColumn{"int16", "fib", "1"}, TypedColumn{"int32", "fib", "1"},
                    TypedColumn{"int64", "fib", "1"}, TypedColumn{"uint8", "fib", "1"},
                    TypedColumn{"uint16", "fib", "1"}, TypedColumn{"uint32", "fib", "1"},
                    TypedColumn{"uint64", "fib", "1"}, TypedColumn{"float", "fb", "1"},
                    TypedColumn{"double", "fb", "1"}, TypedColumn{"bool", "fib", "1"},
                    TypedColumn{"date32[day]", "fib", "1"}, TypedColumn{"time32[ms]", "fib", "1"},
                    TypedColumn{"time64[us]", "fib", "1"}, TypedColumn{"timestamp[ms]", "fib", "1"},
                    TypedColumn{"timestamp[us]", "fib", "1"}, TypedColumn{"timestamp[ns]", "fib", "1"},
                    TypedColumn{"timestamp[us, tz=UTC]", "fib", "1"}, TypedColumn{"duration[s]", "fib", "1"},
                    TypedColumn{"string", "tb", "1"}, TypedColumn{"large_string", "tb", "1"},
                    TypedColumn{"string_view", "tb", "1"}, TypedColumn{"binary", "tb", "1"},
                    TypedColumn{"large_binary", "tb", "1"}, TypedColumn{"binary_view", "tb", "1"},
                    TypedColumn{"fixed_size_binary", "fb", "1"}, TypedColumn{"dictionary", "fb", "1"},
                    TypedColumn{"list", "fib", "1"}, TypedColumn{"large_list", "fib", "1"},
                    TypedColumn{"fixed_size_list", "fib", "1"}, TypedColumn{"halffloat", "", ""},
                    TypedColumn{"decimal32(5, 2)", "", ""}, TypedColumn{"decimal64(5, 2)", "", ""},
                    TypedColumn{"decimal128(5, 2)", "", ""}, TypedColumn{"decimal256(5, 2)", "", ""},
                    TypedColumn{"list_view", "", ""}, TypedColumn{"struct", "", ""}, TypedColumn{"map", "", ""},
                    TypedColumn{"list_of_structs", "", ""}, TypedColumn{"null", "", ""}, TypedColumn{"uuid", "", ""}),
    [](const auto& type) {
      std::string name = type.param.name;
      for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      return name;
    });

TEST_P(ParquetType, IsTakenOrRefusedByItsName) {
  const std::string takers = GetParam().takers;
  for (const auto& [kind, taker, expected] :
       {std::tuple{ValueKind::kFloat, 'f', "expected numbers"}, std::tuple{ValueKind::kInteger, 'i', "expected whole"},
        std::tuple{ValueKind::kBytes, 'b', "expected numbers, strings or binary values"}}) {
    const std::string error = read(kind);
    if (takers.find(taker) != std::string::npos)
      EXPECT_EQ(error, "");
    else if (taker == 'f' && takers.find('t') != std::string::npos)
      EXPECT_THAT(error,
                  HasSubstr("types.parquet\", record 1: 'a text of more than 12 bytes isn't in th...' in column '" +
                            std::string(GetParam().name) + "', expected a finite number"));
    else
      EXPECT_THAT(error, testing::AllOf(HasSubstr("column '" + std::string(GetParam().name) + "': it has the type "),
                                        HasSubstr(expected)));
  }
  if (takers.empty()) return;
  if (takers.find('f') != std::string::npos) {
    ASSERT_EQ(read(ValueKind::kFloat), "");
    EXPECT_EQ(table_.columns[0].floats.front(), 1.0F);
  }
  ASSERT_EQ(read(ValueKind::kBytes), "");
  EXPECT_EQ(table_.columns[0].bytes.front(), GetParam().first);
}

// A file of 238 bytes must not make Arrow fill 2 GiB with zeros.
TEST(DamagedParquet, PageTakesNoMoreMemoryThanTheFileMayNeed) {
  const auto file = ParquetFile::open(DISTTRAIN_TEST_DATA "/fuzz/parquet/page_of_2_gib", {{"age", ValueKind::kBytes}});
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE((*file)->start(0));
  Table table;
  EXPECT_THAT(error_of((*file)->next(table)),
              testing::AllOf(HasSubstr("page_of_2_gib\" can't be read as a Parquet file"), HasSubstr("cap exceeded")));
}

}  // namespace
}  // namespace disttrain::input
