// Columns of bytes in files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/builtin/builtin.h"
#include "input/batch_buffer.h"
#include "input/columns.h"
#include "input/fits.h"
#include "input/keep_fitted.h"
#include "input/numbered_dataset.h"
#include "input/parquet/parquet_functions.h"
#include "tests/input/input_files.h"
#include "tests/input/parquet_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Strings = std::vector<std::string>;

const std::string kData = DISTTRAIN_TEST_DATA;

class BytesColumns : public testing::Test {
 protected:
  static ColumnSection column(std::uint32_t limit, std::uint32_t length = 0, const std::string& name = "text") {
    ColumnSection section = column_section(name, ColumnKind::kBytes);
    section.limit = limit;
    section.length = length;
    return section;
  }

  Source source_of(DataFormat format, const std::string& files, ColumnSection section) const {
    Source source = input::source(format, folder_, files);
    source.columns = {std::move(section)};
    source.memory = std::uint64_t{1} << 30;
    source.parquet = &parquet_functions();
    return source;
  }
  Source jsonl(const std::string& lines, ColumnSection section) const {
    folder_.write("x.jsonl", lines);
    return source_of(DataFormat::kJsonl, "x.jsonl", std::move(section));
  }

  static std::string why_refused(const Source& source) {
    const auto dataset = load_dataset(source);
    return dataset ? "accepted" : dataset.error().message;
  }

  // The values of records as a trainer gets them, or the error as the only one.
  static Strings strings(const Dataset& dataset, const std::vector<std::uint64_t>& indices, std::size_t column = 0) {
    BatchBuffer batch(dataset, indices.size(), columns_of(dataset, 1.0));
    if (const Status filled = batch.fill(indices); !filled) return {filled.error().message};
    const ColumnValues& values = batch.batch().columns[column];
    Strings found;
    std::uint64_t begin = 0;
    for (const std::uint64_t end : values.row_ends) {
      found.emplace_back(reinterpret_cast<const char*>(values.bytes.data()) + begin, end - begin);
      begin = end;
    }
    EXPECT_EQ(begin, values.bytes.size());
    return found;
  }
  static std::string padded(const Dataset& dataset, std::uint64_t index) {
    const auto values = gather<std::uint8_t>(dataset, {index}, 0, DType::kUint8, dataset.columns().at(0).elements);
    return {values.begin(), values.end()};
  }

  Folder folder_;
};

TEST_F(BytesColumns, StayAsTheyAre) {
  const std::string lines = "{\"text\": \"h\\u00e9\\u0000\"}\n{\"text\": \"\"}\n{\"text\": \"word\"}\n";
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{1} << 30}) {
    Source source = jsonl(lines, column(1 << 24));
    source.memory = memory;
    const auto dataset = load(source);
    EXPECT_EQ(dataset->figures() != nullptr, memory == 1);
    ASSERT_EQ(dataset->columns().size(), 1U) << "there is no label";
    const std::vector<ColumnSpec> for_trainer = columns_of(*dataset, 0.5);
    EXPECT_EQ(for_trainer[0].dtype, DType::kBytes);
    EXPECT_TRUE(for_trainer[0].ragged);
    ModelSpec trainer;
    trainer.columns = for_trainer;
    EXPECT_TRUE(fits(*dataset, trainer, {}, source));
    const std::string first("h\xc3\xa9\0", 4);
    EXPECT_THAT(strings(*dataset, {2, 0, 1, 0}), ElementsAre("word", first, "", first));
    EXPECT_THAT(strings(*dataset, {1}), ElementsAre(""));
  }
}

// The memory of a batch depends on the values, not on the limit: here 1,000 records of up to 16 MiB.
TEST_F(BytesColumns, TakeTheMemoryOfTheirValues) {
  const auto dataset = load(jsonl("{\"text\": \"ab\"}\n", column(1 << 24)));
  EXPECT_THAT(strings(*dataset, std::vector<std::uint64_t>(1000, 0)), testing::Each("ab"));
}

TEST_F(BytesColumns, ArePaddedAndCutToALength) {
  ColumnSection section = column(0, 3);
  const std::string lines = "{\"text\": \"ab\"}\n{\"text\": \"abcde\"}\n{\"text\": \"\"}\n";
  auto dataset = load(jsonl(lines, section));
  const ColumnSpec spec = columns_of(*dataset, 1.0).at(0);
  EXPECT_EQ(spec.dtype, DType::kUint8);
  EXPECT_FALSE(spec.ragged);
  EXPECT_THAT(spec.shape, ElementsAre(3U));
  EXPECT_EQ(padded(*dataset, 0), std::string("ab\0", 3));
  EXPECT_EQ(padded(*dataset, 1), "abc");
  EXPECT_EQ(padded(*dataset, 2), std::string("\0\0\0", 3));

  section.truncate = Truncate::kLeft;
  section.pad = 255;
  section.with_length = true;
  dataset = load(jsonl(lines, section));
  EXPECT_EQ(padded(*dataset, 0), "ab\xff");
  EXPECT_EQ(padded(*dataset, 1), "cde");
  EXPECT_EQ(dataset->columns().at(1).name, "text_length");
  EXPECT_THAT(gather<std::int32_t>(*dataset, {0, 1, 2}, 1, DType::kInt32, 1), ElementsAre(2, 3, 0));

  section.pad_to = PadTo::kLongest;
  dataset = load(jsonl(lines, section));
  EXPECT_TRUE(columns_of(*dataset, 1.0).at(0).ragged);
  EXPECT_EQ(columns_of(*dataset, 1.0).at(0).pad, 255);
  EXPECT_THAT(strings(*dataset, {0, 1}), ElementsAre("ab", "cde"));
}

TEST_F(BytesColumns, ErrorsNameFileRecordAndColumn) {
  const std::string lines = "{\"text\": \"ab\"}\n{\"text\": \"abc\"}\n";
  EXPECT_THAT(why_refused(jsonl(lines, column(2))),
              testing::AllOf(HasSubstr("x.jsonl\", record 1: 3 bytes in column 'text', expected at most 2"),
                             HasSubstr("raise data.columns.text.limit")));
  ColumnSection section = column(0, 2);
  section.truncate = Truncate::kNone;
  EXPECT_THAT(why_refused(jsonl(lines, section)),
              testing::AllOf(HasSubstr("record 1: 3 bytes in column 'text', expected at most 2"),
                             HasSubstr("raise data.columns.text.length or set data.columns.text.truncate")));
  EXPECT_THAT(why_refused(jsonl("{\"text\": \"a\"}\n{}\n", column(2))),
              HasSubstr("record 1: no value in column 'text', expected one value"));
  Source streamed = jsonl(lines, column(2));
  streamed.memory = 1;
  EXPECT_THAT(strings(*load(streamed), {0, 1}).at(0), HasSubstr("record 1: 3 bytes in column 'text'"));
}

TEST_F(BytesColumns, ComeFromCsvFiles) {
  folder_.write("x.csv", "text,age,kind\n\"a,\"\"b\",3,no\n\xff,4,yes\n?,5,no\n,6,yes\n");
  Source source = source_of(DataFormat::kCsv, "x.csv", column(9));
  source.missing = {"?"};
  source.columns.push_back(column_section("age", ColumnKind::kNumeric));
  source.columns.push_back(column_section("kind", ColumnKind::kLabel));
  const auto dataset = load(source);
  EXPECT_THAT(names_of_columns(*dataset), ElementsAre("inputs", "text", "labels"));
  // data.missing is for numbers, categories and labels only. An empty field has no bytes.
  EXPECT_THAT(strings(*dataset, {0, 1, 2, 3}, 1), ElementsAre("a,\"b", "\xff", "?", ""));
}

TEST_F(BytesColumns, ComeFromTfRecords) {
  Source source = source_of(DataFormat::kTfrecord, "examples.tfrecord", column(9, 0, "job"));
  source.path = kData + "/tfrecord";
  source.index = folder_.path();
  source.memory = 1;
  const auto dataset = load(source);
  EXPECT_THAT(strings(*dataset, {2, 0}), ElementsAre(std::string("\xff\0", 2), "clerk"));
  EXPECT_THAT(strings(*dataset, {1}).at(0), HasSubstr("record 1: 2 values in column 'job', expected one value"));
}

TEST_F(BytesColumns, ComeFromMembersOfTarFiles) {
  Source source = source_of(DataFormat::kWebdataset, "samples.tar", column(2000, 0, "file"));
  source.path = kData + "/webdataset";
  source.columns[0].from = "jpg;png";
  std::string second;
  for (int i = 0; i < 300; ++i) second += "second";
  EXPECT_THAT(strings(*load(source), {0, 1, 2}), ElementsAre("\xff\xd8 first", second, ""));
}

TEST_F(BytesColumns, ComeFromParquetFiles) {
  std::vector<std::optional<std::string>> texts;
  for (int i = 0; i < 2000; ++i) texts.emplace_back(std::string(static_cast<std::size_t>(i % 5), '\xfe'));
  write_parquet(folder_ / "x.parquet",
                {parquet_column<arrow::StringBuilder>("text", std::vector<std::optional<std::string>>(2000, "same")),
                 parquet_column<arrow::BinaryBuilder>("raw", texts)},
                300);
  Source source = source_of(DataFormat::kParquet, "x.parquet", column(4));
  source.columns.push_back(column(0, 4, "raw"));
  for (const ShuffleKind shuffle : {ShuffleKind::kEpoch, ShuffleKind::kBlocks}) {
    source.shuffle = shuffle;
    const auto dataset = load(source);
    EXPECT_THAT(strings(*dataset, {1999, 301}), ElementsAre("same", "same"));
    EXPECT_THAT(gather<std::uint8_t>(*dataset, {1999, 301, 300}, 1, DType::kUint8, 4),
                ElementsAre(254, 254, 254, 254, 254, 0, 0, 0, 0, 0, 0, 0));
  }
}

// Blocks of records are kept. How much memory they take follows from the sizes of the files, not from the limit.
TEST_F(BytesColumns, OfBlocksAndCompressedFilesNeedMemoryForTheirFiles) {
  constexpr std::uint64_t kRecords = 400'000;
  const auto text_of = [](std::uint64_t record) { return std::string(record % 70, 'a'); };
  for (int part = 0; part < 4; ++part) {
    std::string lines;
    for (std::uint64_t i = 0; i < kRecords / 4; ++i) lines += "{\"text\": \"" + text_of(i) + "\"}\n";
    folder_.write("plain-" + std::to_string(part) + ".jsonl", lines);
    folder_.write("packed-" + std::to_string(part) + ".jsonl.gz", gzip(lines));
  }
  Source source = source_of(DataFormat::kJsonl, "", column(1 << 24));
  source.shuffle = ShuffleKind::kBlocks;
  source.shuffle_window = 1;
  for (const char* files : {"plain-*", "packed-*"}) {
    source.files = files;
    source.memory = 12'000'000;
    const auto dataset = load(source);
    ASSERT_NE(dataset->figures(), nullptr) << "it is streamed";
    EXPECT_THAT(strings(*dataset, {kRecords - 1, 0, 69}), ElementsAre(text_of(kRecords / 4 - 1), "", text_of(69)));
    source.memory = 6'000'000;
    EXPECT_THAT(why_refused(source), HasSubstr("the records of 2 blocks take up to")) << files;
  }
}

// The bytes of a text are the tokens of a model of characters.
TEST_F(BytesColumns, AreTokensOfATransformer) {
  const Source source = jsonl("{\"text\": \"ab\"}\n{\"text\": \"abcde\"}\n", column(0, 4));
  const auto dataset = load(source);
  ModelSection model;
  model.builtin = "transformer";
  model.transformer.context = 3;
  const ModelSpec spec = builtin_model(model).value();
  ASSERT_TRUE(fits(*dataset, spec, model, source)) << fits(*dataset, spec, model, source).error().message;
  BatchBuffer batch(*dataset, 2, spec.columns);
  ASSERT_TRUE(batch.fill(std::vector<std::uint64_t>{1, 0}));
  EXPECT_THAT(batch.batch().columns[0].as<std::uint8_t>(), ElementsAre('a', 'b', 'c', 'd', 'a', 'b'));
  EXPECT_THAT(batch.batch().columns[0].row_ends, ElementsAre(4U, 6U));
  model.transformer.context = 4;
  EXPECT_THAT(fits(*dataset, builtin_model(model).value(), model, source).error().message,
              HasSubstr("has bytes, 4 of them, but the model's column \"tokens\" takes 5: change "
                        "data.columns.text.length or model.transformer.context"));
}

TEST_F(BytesColumns, OfAProgramHaveALength) {
  Source source = jsonl("{\"text\": \"ab\"}\n", column(0, 4));
  ModelSpec spec;
  spec.columns = {{.name = "text", .dtype = DType::kUint8, .shape = {4}}};
  EXPECT_TRUE(fits(*load(source), spec, {}, source));
  spec.columns[0].limit = 128;
  EXPECT_THAT(fits(*load(source), spec, {}, source).error().message,
              HasSubstr("has bytes from 0 to 255, but the model's column \"text\" takes 0 to 127"));
  source.columns = {column(4)};
  EXPECT_THAT(fits(*load(source), spec, {}, source).error().message,
              HasSubstr("the column \"text\" of data.columns has bytes of any length, but the model's column \"text\" "
                        "takes 4 values of each record: set data.columns.text.length instead of limit"));
}

TEST_F(BytesColumns, LengthsAreKnownForBuckets) {
  Source source = jsonl("{\"text\": \"abc\"}\n{\"text\": \"\"}\n{\"text\": \"ab\"}\n", column(0, 2));
  source.bucket_by = "text";
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{1} << 30}) {
    source.memory = memory;
    source.columns = {column(0, 2)};
    EXPECT_THAT(load(source)->lengths(), ElementsAre(2U, 0U, 2U)) << memory;
    source.columns = {column(3)};
    EXPECT_THAT(load(source)->lengths(), ElementsAre(3U, 0U, 2U)) << memory;
  }
}

TEST_F(BytesColumns, ChangeTheHashAndLeaveNothingToACheckpoint) {
  const std::vector<ColumnSection> columns = {column(9)};
  const auto dataset = load(jsonl("{\"text\": \"ab\"}\n{\"text\": \"c\"}\n", columns[0]));
  const std::uint64_t hash = dataset->hash();
  EXPECT_NE(load(jsonl("{\"text\": \"a\"}\n{\"text\": \"bc\"}\n", columns[0]))->hash(), hash);
  const auto kept = checkpoint::decode_columns(encode_fitted(columns, *dataset->fitted_columns()), "columns.cbor");
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_THAT(kept->at(0).words, IsEmpty());
  Source source = jsonl("{\"text\": \"ab\"}\n", columns[0]);
  const auto fitted = fitted_from(columns, *kept);
  ASSERT_TRUE(fitted) << fitted.error().message;
  source.fitted = *fitted;
  EXPECT_THAT(strings(*load(source), {0}), ElementsAre("ab"));
}

}  // namespace
}  // namespace disttrain::input
