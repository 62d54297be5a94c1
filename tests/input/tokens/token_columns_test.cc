// Columns of tokens in files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/builtin/builtin.h"
#include "input/batch_buffer.h"
#include "input/columns.h"
#include "input/fits.h"
#include "input/keep_fitted.h"
#include "input/numbered_dataset.h"
#include "input/parquet/parquet_functions.h"
#include "tests/input/parquet_files.h"
#include "tests/input/tokens/token_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(TokenColumns, TextsAreCutAndPadded) {
  ColumnSection section = column(5);
  const std::string lines = "{\"text\": \"ab\"}\n{\"text\": \"abababab\"}\n{\"text\": \"\"}\n";
  const auto dataset = jsonl(lines, section);
  ASSERT_TRUE(dataset) << dataset.error().message;
  ASSERT_EQ((*dataset)->columns().size(), 1U) << "there is no label";
  EXPECT_EQ((*dataset)->columns()[0].name, "text");
  EXPECT_EQ((*dataset)->columns()[0].largest, 5);
  EXPECT_THAT(record(**dataset, 0), ElementsAre(4, 3, 5, 0, 0));
  EXPECT_THAT(record(**dataset, 1), ElementsAre(4, 3, 3, 3, 5));
  EXPECT_THAT(record(**dataset, 2), ElementsAre(4, 5, 0, 0, 0));

  section.special_tokens = false;
  section.pad = 2;
  section.length = 3;
  section.truncate = Truncate::kLeft;
  section.with_length = true;
  const auto left = jsonl("{\"text\": \"ab\"}\n{\"text\": \"ababaa\"}\n", section);
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_THAT(record(**left, 0), ElementsAre(3, 2, 2));
  EXPECT_THAT(record(**left, 1), ElementsAre(3, 1, 1));
  EXPECT_EQ((*left)->columns()[1].name, "text_length");
  EXPECT_THAT(record(**left, 0, 1), ElementsAre(1));
  EXPECT_THAT(record(**left, 1, 1), ElementsAre(3));
}

TEST_F(TokenColumns, ErrorsNameFileRecordAndColumn) {
  ColumnSection section = column(3);
  section.truncate = Truncate::kNone;
  EXPECT_THAT(
      why_refused("{\"text\": \"a\"}\n{\"text\": \"aa\"}\n", section),
      testing::AllOf(HasSubstr("x.jsonl\", record 1: "), HasSubstr("2 tokens in column 'text', expected at most 1")));
  EXPECT_THAT(why_refused("{\"other\": \"a\"}\n", section), HasSubstr("no value in column 'text'"));
  section.pad = 6;
  EXPECT_THAT(why_refused("{\"text\": \"a\"}\n", section), HasSubstr("data.columns.text.pad is 6"));
  section.pad = 0;
  section.length = 2;
  EXPECT_THAT(why_refused("{\"text\": \"a\"}\n", section), HasSubstr("sets 2 tokens around each text"));
  section.tokenizer = folder_ / "missing.json";
  EXPECT_THAT(why_refused("{\"text\": \"a\"}\n", section), HasSubstr("data.columns.text.tokenizer"));
  section.tokenizer = folder_.write("x.txt", "");
  EXPECT_THAT(why_refused("{\"text\": \"a\"}\n", section), HasSubstr("must name a file that ends in .json"));
  section.tokenizer = folder_.write("bad.model", "bad");
  EXPECT_THAT(why_refused("{\"text\": \"a\"}\n", section), HasSubstr("bad.model: isn't a SentencePiece model"));

  folder_.write("x.csv", "text\n\"a\"\n\"b\xff\"\n");
  const auto csv = load_dataset(source_of("x.csv", DataFormat::kCsv, column(4)));
  ASSERT_FALSE(csv);
  EXPECT_THAT(csv.error().message, HasSubstr("column 'text': the text isn't UTF-8 at its byte 1"));
}

TEST_F(TokenColumns, WholeNumbersMayBeTokens) {
  ColumnSection section = column(4);
  section.tokenizer = "";
  section.limit = 10;
  const auto dataset = jsonl("{\"text\": [9, 8]}\n{\"text\": [1, 2, 3, 4, 5]}\n{\"text\": 7}\n", section);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_EQ((*dataset)->columns()[0].largest, 9);
  EXPECT_THAT(record(**dataset, 0), ElementsAre(9, 8, 0, 0));
  EXPECT_THAT(record(**dataset, 1), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(record(**dataset, 2), ElementsAre(7, 0, 0, 0));
  EXPECT_THAT(
      why_refused("{\"text\": [1]}\n{\"text\": [10]}\n", section),
      testing::AllOf(HasSubstr("x.jsonl\", record 1: "), HasSubstr("the token 10 in column 'text', expected 0 to 9")));
  EXPECT_THAT(why_refused("{\"text\": [-1]}\n", section), HasSubstr("the token -1"));
  EXPECT_THAT(why_refused("{\"text\": []}\n", section), HasSubstr("expected at least one token"));
}

TEST_F(TokenColumns, StandBesideLabelsAndOtherColumns) {
  folder_.write("x.csv", "text,age,kind\nab,3,no\nb,4,yes\n");
  Source source = source_of("x.csv", DataFormat::kCsv, column(4));
  source.columns.push_back(column_section("age", ColumnKind::kNumeric));
  source.columns.push_back(column_section("kind", ColumnKind::kLabel));
  const auto dataset = load_dataset(source);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_THAT(names_of_columns(**dataset), ElementsAre("inputs", "text", "labels"));
  EXPECT_THAT(record(**dataset, 1, 1), ElementsAre(4, 2, 5, 0));
  EXPECT_EQ(columns_of(**dataset, 1.0)[1].dtype, DType::kInt32) << "for a trainer";
  EXPECT_EQ(columns_of(**dataset, 0.5)[1].dtype, DType::kInt32) << "data.scale isn't for tokens";
}

// Tokens may take more memory than their texts, so the size of the files isn't enough to decide.
TEST_F(TokenColumns, AreReadFromTheFilesIfTheyDontFitIntoMemory) {
  std::string lines;
  for (int i = 0; i < 1000; ++i)
    lines += "{\"text\": \"" + std::string(static_cast<std::size_t>(i % 70), 'a') + "\"}\n";
  folder_.write("x.jsonl", lines);
  Source source = source_of("x.jsonl", DataFormat::kJsonl, column(100));
  const auto whole = load_dataset(source);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ((*whole)->figures(), nullptr);
  source.memory = 150'000;
  const auto streamed = load_dataset(source);
  ASSERT_TRUE(streamed) << streamed.error().message;
  EXPECT_NE((*streamed)->figures(), nullptr) << "it is streamed";
  for (const std::uint64_t i : {0U, 6U, 500U, 999U}) EXPECT_EQ(record(**streamed, i), record(**whole, i)) << i;
  source.shuffle = ShuffleKind::kBlocks;
  source.shuffle_window = 1;
  source.memory = 2'000'000;
  const auto blocks = load_dataset(source);
  ASSERT_TRUE(blocks) << blocks.error().message;
  EXPECT_EQ(record(**blocks, 999), record(**whole, 999));
}

TEST_F(TokenColumns, GiveATransformerItsVocabulary) {
  const auto dataset = jsonl("{\"text\": \"ab\"}\n", column(5));
  DataSection data;
  data.columns = {column(5)};
  ModelSection model;
  model.builtin = "transformer";
  model.transformer.context = 4;
  size_vocabulary(**dataset, model);
  EXPECT_EQ(model.transformer.vocabulary, 6U);
  const Source source = source_of("x.jsonl", DataFormat::kJsonl, column(5));
  EXPECT_TRUE(fits(**dataset, builtin_model(model).value(), model, source));
  EXPECT_THAT(builtin_model(model)->columns[0].shape, ElementsAre(5U));
  model.transformer.context = 5;
  const Status lengths = fits(**dataset, builtin_model(model).value(), model, source);
  ASSERT_FALSE(lengths);
  EXPECT_THAT(lengths.error().message, HasSubstr("change data.columns.text.length or model.transformer.context"));
  model.transformer.context = 4;
  model.transformer.vocabulary = 5;
  const Status small = fits(**dataset, builtin_model(model).value(), model, source);
  ASSERT_FALSE(small);
  EXPECT_THAT(small.error().message, HasSubstr("change model.transformer.vocabulary"));
}

TEST_F(TokenColumns, AreBoundByTheirNames) {
  ColumnSection ids = column(3);
  ids.name = "ids";
  ids.tokenizer = "";
  ids.limit = 7;
  folder_.write("x.jsonl", "{\"text\": \"ab\", \"ids\": [1, 6]}\n");
  Source source = source_of("x.jsonl", DataFormat::kJsonl, column(4));
  source.columns.push_back(ids);
  const auto dataset = load(source);
  ModelSpec spec;
  spec.columns = {{.name = "ids", .dtype = DType::kInt64, .shape = {3}, .limit = 7}};
  ASSERT_TRUE(fits(*dataset, spec, {}, source));
  BatchBuffer batch(*dataset, 1, spec.columns);
  ASSERT_TRUE(batch.fill(std::vector<std::uint64_t>{0}));
  EXPECT_THAT(batch.batch().columns[0].as<std::int64_t>(), ElementsAre(1, 6, 0));
  spec.columns[0].dtype = DType::kFloat32;
  EXPECT_THAT(fits(*dataset, spec, {}, source).error().message,
              HasSubstr("the column \"ids\" of data.columns has tokens, but the model's column \"ids\" takes float32"));
  spec.columns.push_back({.name = "words", .dtype = DType::kInt64, .shape = {4}});
  EXPECT_THAT(fits(*dataset, spec, {}, source).error().message,
              HasSubstr("data.columns has the arrays \"text\", \"ids\": rename"));
  ModelSection builtin;
  builtin.builtin = "transformer";
  spec.columns = {{.name = "tokens", .dtype = DType::kInt32, .shape = {4}, .limit = 6}};
  EXPECT_THAT(fits(*dataset, spec, builtin, source).error().message,
              HasSubstr("data.columns.ids gives \"ids\", which model.builtin = \"transformer\" doesn't take"));
}

TEST_F(TokenColumns, TakeTheirTokenizerBesideTheCheckpoint) {
  const std::vector<ColumnSection> columns = {column(4)};
  const auto dataset = jsonl("{\"text\": \"ab\"}\n", columns[0]);
  const std::string bytes = encode_fitted(columns, *(*dataset)->fitted_columns());
  const auto kept = checkpoint::decode_columns(bytes, "columns.cbor");
  ASSERT_TRUE(kept) << kept.error().message;
  Source source = source_of("x.jsonl", DataFormat::kJsonl, columns[0]);
  auto fitted = fitted_from(columns, *kept);
  ASSERT_TRUE(fitted) << fitted.error().message;
  source.fitted = *fitted;
  EXPECT_THAT(record(*load(source), 0), ElementsAre(4, 3, 5, 0));
  std::string other = kTokenizer;
  other.insert(0, 1, ' ');
  folder_.write("tokenizer.json", other);
  EXPECT_THAT(fitted_from(columns, *kept).error().message, HasSubstr("isn't the tokenizer with which the checkpoint"));
}

// Workers with other tokenizers have other records, although the files are the same.
TEST_F(TokenColumns, TokenizersChangeTheHash) {
  ColumnSection other = column(4);
  const std::string line = "{\"text\": \"ab\"}\n";
  folder_.write("x.jsonl", line + line);
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{1} << 30}) {
    Source source = source_of("x.jsonl", DataFormat::kJsonl, column(4));
    source.memory = memory;
    const std::uint64_t hash = load(source)->hash();
    EXPECT_EQ(load(source)->hash(), hash);
    std::string json = kTokenizer;
    json.replace(json.find("\"a b\""), 5, "\"b a\"");
    json.replace(json.find("\"ab\""), 4, "\"ba\"");
    source.columns[0].tokenizer = folder_.write("other.json", json);
    EXPECT_NE(load(source)->hash(), hash) << memory;
  }
}

// Several threads encode the columns of a row group.
TEST_F(TokenColumns, OfParquetFilesAreTextsOrLists) {
  constexpr int kRecords = 2000;
  std::vector<std::optional<std::string>> texts;
  auto values = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder lists(arrow::default_memory_pool(), values);
  for (int i = 0; i < kRecords; ++i) {
    texts.push_back(std::string(static_cast<std::size_t>(i % 5), 'a'));
    ASSERT_TRUE(lists.Append().ok());
    for (int value = 0; value <= i % 4; ++value) ASSERT_TRUE(values->Append(value + i % 3).ok());
  }
  write_parquet(folder_ / "x.parquet", {parquet_column<arrow::StringBuilder>("text", texts), {"ids", *lists.Finish()}},
                300);
  ColumnSection ids = column(3);
  ids.name = "ids";
  ids.tokenizer = "";
  ids.limit = 7;
  ids.with_length = true;
  Source source = source_of("x.parquet", DataFormat::kParquet, column(4));
  source.columns.push_back(ids);
  source.parquet = &parquet_functions();
  for (const ShuffleKind shuffle : {ShuffleKind::kEpoch, ShuffleKind::kBlocks}) {
    source.shuffle = shuffle;
    const auto dataset = load(source);
    EXPECT_THAT(record(*dataset, 1999), ElementsAre(4, 1, 1, 5));
    EXPECT_THAT(record(*dataset, 301), ElementsAre(4, 1, 5, 0));
    EXPECT_THAT(record(*dataset, 1999, 1), ElementsAre(1, 2, 3));
    EXPECT_THAT(record(*dataset, 301, 1), ElementsAre(1, 2, 0));
    EXPECT_THAT(record(*dataset, 1999, 2), ElementsAre(3));
    EXPECT_THAT(record(*dataset, 300, 2), ElementsAre(1));
  }
}

TEST_F(TokenColumns, OfDifferentLengthsComeWithoutPadding) {
  const std::string lines = "{\"text\": \"ab\"}\n{\"text\": \"abababab\"}\n{\"text\": \"\"}\n";
  folder_.write("x.jsonl", lines);
  ColumnSection section = column(5);
  section.pad_to = PadTo::kLongest;
  section.pad = 1;
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{1} << 30}) {
    Source source = source_of("x.jsonl", DataFormat::kJsonl, section);
    source.memory = memory;
    const auto dataset = load(source);
    const std::vector<ColumnSpec> for_trainer = columns_of(*dataset, 1.0);
    EXPECT_TRUE(for_trainer[0].ragged);
    EXPECT_EQ(for_trainer[0].pad, 1);
    EXPECT_THAT(for_trainer[0].shape, ElementsAre(5U));
    BatchBuffer batch(*dataset, 3, for_trainer);
    ASSERT_TRUE(batch.fill(std::vector<std::uint64_t>{2, 0}));
    EXPECT_THAT(batch.batch().columns[0].as<std::int32_t>(), ElementsAre(4, 5, 4, 3, 5));
    EXPECT_THAT(batch.batch().columns[0].row_ends, ElementsAre(2U, 5U));
    ASSERT_TRUE(batch.fill(std::vector<std::uint64_t>{1, 1, 2}));
    EXPECT_THAT(batch.batch().columns[0].row_ends, ElementsAre(5U, 10U, 12U));
    // A program has a fixed shape.
    ModelSpec spec;
    spec.columns = {{.name = "text", .dtype = DType::kInt32, .shape = {5}}};
    EXPECT_THAT(
        fits(*dataset, spec, {}, source).error().message,
        HasSubstr("has tokens of different lengths, but the model's column \"text\" takes 5 of each record: set "
                  "data.columns.text.pad_to = \"length\""));
    // The builtin transformer takes tokens without padding, whatever pad_to is.
    ModelSection model;
    model.builtin = "transformer";
    model.transformer.context = 4;
    size_vocabulary(*dataset, model);
    const ModelSpec transformer = builtin_model(model).value();
    for (const PadTo pad_to : {PadTo::kLength, PadTo::kLongest}) {
      source.columns[0].pad_to = pad_to;
      const auto same = load(source);
      ASSERT_TRUE(fits(*same, transformer, model, source));
      BatchBuffer bytes(*same, 3, transformer.columns);
      ASSERT_TRUE(bytes.fill(std::vector<std::uint64_t>{0, 2}));
      EXPECT_THAT(bytes.batch().columns[0].as<std::uint8_t>(), ElementsAre(4, 3, 5, 4, 5));
      EXPECT_THAT(bytes.batch().columns[0].row_ends, ElementsAre(3U, 5U));
    }
  }
}

// Data in memory knows the lengths, other data finds them in the first pass. Both count the same records.
TEST_F(TokenColumns, LengthsAreKnownForBuckets) {
  std::string text = "text,kind\n";
  for (int i = 0; i < 50; ++i)
    text += std::string(static_cast<std::size_t>(1 + i % 5), 'a') + "," + std::to_string(i) + "\n";
  folder_.write("a.csv", text);
  folder_.write("b.csv", "text,kind\naaa,1\naa,2\n");
  Source source = source_of("*.csv", DataFormat::kCsv, column(5));
  ColumnSection kind;
  kind.name = "kind";
  kind.kind = ColumnKind::kLabel;
  source.columns.push_back(kind);
  source.begin = 4;
  source.end = 52;
  EXPECT_TRUE(load(source)->lengths().empty());
  source.bucket_by = "text";
  const auto whole = load(source);
  ASSERT_EQ(whole->figures(), nullptr);
  source.memory = 1;
  const auto streamed = load(source);
  ASSERT_NE(streamed->figures(), nullptr);
  ASSERT_EQ(whole->lengths().size(), 48U);
  for (std::size_t i = 0; i < 48; ++i) {
    const std::size_t characters = i < 46 ? 1 + (i + 4) % 5 : 49 - i;
    const auto length = static_cast<std::uint32_t>(std::min<std::size_t>(characters, 3) + 2);
    EXPECT_EQ(whole->lengths()[i], length) << i;
    EXPECT_EQ(streamed->lengths()[i], length) << i;
  }
  EXPECT_EQ(whole->fitted_columns()->columns[1].label.largest, 49.0);
  EXPECT_EQ(streamed->fitted_columns()->columns[1].label.largest, 49.0);
  const std::uint64_t hash = streamed->hash();
  source.columns[0].special_tokens = false;
  EXPECT_NE(load(source)->hash(), hash) << "other lengths";
}

}  // namespace
}  // namespace disttrain::input
