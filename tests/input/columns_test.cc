// csv files with [data.columns].
#include "input/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/columns.h"
#include "input/csv.h"
#include "input/unlabelled_dataset.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;

ColumnSection column_of(const std::string& name, ColumnKind kind) {
  ColumnSection column;
  column.name = name;
  column.kind = kind;
  return column;
}
ColumnSection number(const std::string& name) {
  return column_of(name, ColumnKind::kNumeric);
}
ColumnSection category(const std::string& name) {
  return column_of(name, ColumnKind::kCategory);
}
ColumnSection label(const std::string& name) {
  return column_of(name, ColumnKind::kLabel);
}

class ColumnsTest : public testing::Test {
 protected:
  Source source_of(const std::string& files = "a.csv") const {
    Source source = input::source(DataFormat::kCsv, folder_, files);
    source.columns = columns_;
    source.missing = {"?"};
    return source;
  }

  std::unique_ptr<Dataset> load_text(const std::string& text) {
    folder_.write("a.csv", text);
    return load(source_of());
  }

  void expect_bad(const std::string& text, const std::vector<std::string>& parts) {
    folder_.write("a.csv", text);
    expect_error(source_of(), ErrorCode::kData, parts);
  }

  // The values of one column of the data set, for all its records.
  template <typename T>
  static std::vector<T> values(const Dataset& dataset, const std::string& name) {
    std::vector<std::uint64_t> indices(dataset.records());
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
    for (std::size_t c = 0; c < dataset.columns().size(); ++c)
      if (dataset.columns()[c].name == name)
        return gather<T>(dataset, indices, c, std::is_integral_v<T> ? DType::kInt64 : DType::kFloat32,
                         dataset.columns()[c].elements);
    ADD_FAILURE() << "no column " << name;
    return {};
  }
  static std::vector<float> inputs(const Dataset& dataset) { return values<float>(dataset, "inputs"); }
  static std::vector<std::int64_t> categories(const Dataset& dataset) {
    return values<std::int64_t>(dataset, "categories");
  }
  static std::vector<std::int64_t> labels(const Dataset& dataset) { return values<std::int64_t>(dataset, "labels"); }

  Folder folder_;
  std::vector<ColumnSection> columns_;
};

TEST_F(ColumnsTest, AreFoundByTheirNamesInTheHeader) {
  columns_ = {number("x"), label("k"), number("y"), category("w")};
  const auto dataset = load_text("\xEF\xBB\xBFw, k, unused, y , x\n b, 1, text, 2, 1\r\n\n a, 0,, 4.5, -3e1");
  ASSERT_NE(dataset, nullptr);
  EXPECT_THAT(inputs(*dataset), ElementsAre(1, 2, -30, 4.5F));
  EXPECT_THAT(categories(*dataset), ElementsAre(2, 1));
  EXPECT_THAT(labels(*dataset), ElementsAre(1, 0));
}

TEST_F(ColumnsTest, AreFoundByTheirNumbersWithoutAHeader) {
  columns_ = {number("2"), label("0")};
  const auto dataset = load_text("1,a,5\n0,b,6\n");
  ASSERT_NE(dataset, nullptr);
  EXPECT_THAT(inputs(*dataset), ElementsAre(5, 6));
  EXPECT_THAT(labels(*dataset), ElementsAre(1, 0));
}

TEST_F(ColumnsTest, HeaderThatIsReadAsARecordIsExplained) {
  const std::string advice = "; if the line is a header, call the columns by its names in [data.columns]";
  columns_ = {number("0"), label("1")};
  expect_bad("\nx,k\n5,a\n", {"a.csv:2: 'x' in column '0', expected a finite number", advice});
  const auto error_of = [this](const std::string& text) {
    folder_.write("a.csv", text);
    return load_dataset(source_of()).error().message;
  };
  EXPECT_EQ(error_of("5,6\nx,7\n").find(advice), std::string::npos);
  columns_ = {number("x"), label("k")};
  EXPECT_EQ(error_of("x,k\nx,7\n").find(advice), std::string::npos);
}

// A name that isn't a number says that there is a header, also while its column isn't read.
TEST_F(ColumnsTest, HeaderIsNoRecordWithoutTheLabelThatShowsIt) {
  columns_ = {number("0"), number("1"), label("label")};
  columns_[0].normalise = Normalise::kStandard;
  columns_[2].vocabulary = {"a"};
  folder_.write("a.csv", "0,1,label\n5,6,a\n7,8,a\n");
  for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
    Source source = source_of();
    source.memory = memory;
    const auto training = load(source);
    ASSERT_NE(training, nullptr);
    EXPECT_THAT(inputs(*training), ElementsAre(-1, 6, 1, 8));
    source.fitted = training->fitted_columns();
    EXPECT_THAT(inputs(*load(without_labels(source))), ElementsAre(-1, 6, 1, 8));
  }
}

// Two jobs may use the same file in both ways.
TEST_F(ColumnsTest, IndexOfAFileWithAHeaderIsAnotherThanWithout) {
  folder_.write("a.csv", "0,1,y\n5,6,7\n");
  columns_ = {number("0"), label("1")};
  Source source = source_of();
  source.memory = 1;
  EXPECT_EQ(load(source)->records(), 2U);
  source.columns.push_back(column_of("y", ColumnKind::kWeight));
  EXPECT_EQ(load(source)->records(), 1U);
}

TEST_F(ColumnsTest, MayHaveAnotherNameThanInTheFiles) {
  ColumnSection group = number("group");
  group.from = "x";
  group.boundaries = {2, 4};
  columns_ = {number("x"), group, label("k")};
  const auto dataset = load_text("x,k\n1,0\n2,0\n3.9,0\n4,0\n");
  ASSERT_NE(dataset, nullptr);
  EXPECT_THAT(inputs(*dataset), ElementsAre(1, 2, 3.9F, 4));
  EXPECT_THAT(categories(*dataset), ElementsAre(0, 1, 1, 2));
}

// A value is float32, so it is compared with the boundary's float32: that of 0.7 is below 0.7.
TEST_F(ColumnsTest, ANumberThatEqualsABoundaryIsAboveIt) {
  columns_ = {number("x"), label("k")};
  columns_[0].boundaries = {0.1, 0.3, 0.7, 0.9};
  EXPECT_THAT(categories(*load_text("x,k\n0.1,0\n0.3,0\n0.69,0\n0.7,0\n0.9,1\n")), ElementsAre(1, 2, 2, 3, 4));
}

TEST_F(ColumnsTest, QuotedFieldsMayHoldCommasQuotesAndLineEnds) {
  columns_ = {category("w"), label("k")};
  columns_[0].vocabulary = {"a, \"b\"\nc", ""};
  const auto dataset = load_text("\"w\",k\n\"a, \"\"b\"\"\nc\" ,0\n\"\",1\n");
  ASSERT_NE(dataset, nullptr);
  EXPECT_THAT(categories(*dataset), ElementsAre(1, 2));
}

TEST_F(ColumnsTest, RecordsMayBeLongerThanABlock) {
  columns_ = {category("w"), number("x"), label("k")};
  const std::string word(3 << 20, 'w');
  const auto dataset = load_text("w,x,k\n" + word + ",1,0\n\"" + word + "\",2,1\nv,3,1\n");
  ASSERT_NE(dataset, nullptr);
  EXPECT_THAT(inputs(*dataset), ElementsAre(1, 2, 3));
  EXPECT_THAT(categories(*dataset), ElementsAre(2, 2, 1));
}

TEST_F(ColumnsTest, ManyBlocksGiveTheSameAsOne) {
  columns_ = {category("w"), number("x"), label("k")};
  std::string text = "w,x,k\n";
  for (int i = 0; i < 300'000; ++i)
    text += "w" + std::to_string(i % 7) + "," + std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  const auto dataset = load_text(text);
  ASSERT_NE(dataset, nullptr);
  ASSERT_EQ(dataset->records(), 300'000U);
  const std::vector<float> x = inputs(*dataset);
  const std::vector<std::int64_t> w = categories(*dataset);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x[i], static_cast<float>(i));
    ASSERT_EQ(w[i], static_cast<std::int64_t>(i % 7) + 1);
  }
}

// Such a file, compressed, could fill the memory.
TEST_F(ColumnsTest, FileOfBlankLinesIsRefusedHoweverItIsRead) {
  columns_ = {number("x"), label("k")};
  const std::string lines(kMaxCsvRecordBytes + 1, '\n');
  for (const std::string& text : {lines, lines + lines + "x,k\n1,0\n"}) {
    folder_.write("a.csv", text);
    for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
      Source source = source_of();
      source.memory = memory;
      expect_error(source, ErrorCode::kData, {"a.csv:", "bytes of blank lines, expected a line with text before"});
    }
  }
}

TEST_F(ColumnsTest, BlankLinesBehindTheHeaderAreSkipped) {
  columns_ = {number("x"), label("k")};
  const std::string lines(kMaxCsvRecordBytes + 1, '\n');
  folder_.write("a.csv", "\n\nx,k\n1,0\n" + lines + "2,1\n");
  for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
    Source source = source_of();
    source.memory = memory;
    EXPECT_THAT(inputs(*load(source)), ElementsAre(1, 2));
  }
}

TEST_F(ColumnsTest, MissingNumbersTakeTheGivenValueOrAreRefused) {
  columns_ = {number("x"), label("k")};
  expect_bad("x,k\n1,0\n?,0\n", {"a.csv:3: no value in column 'x'", "set data.columns.x.missing"});
  expect_bad("x,k\n1,0\n,0\n", {"a.csv:3: no value in column 'x'"});
  columns_[0].missing = -7;
  EXPECT_THAT(inputs(*load_text("x,k\n1,0\n?,0\n ,1\n")), ElementsAre(1, -7, -7));
}

TEST_F(ColumnsTest, MissingWordsAreTheEmptyWord) {
  columns_ = {category("w"), label("k")};
  EXPECT_THAT(categories(*load_text("w,k\nb,0\n?,0\n,1\n")), ElementsAre(2, 1, 1));
  columns_[0].vocabulary = {"b"};
  EXPECT_THAT(categories(*load_text("w,k\nb,0\n?,0\nc,1\n")), ElementsAre(1, 0, 0));
}

TEST_F(ColumnsTest, StandardNormalisesByTheTrainingRecordsAlone) {
  columns_ = {number("x"), label("k")};
  columns_[0].normalise = Normalise::kStandard;
  folder_.write("a.csv", "x,k\n1,0\n3,0\n1000,1\n");
  Source source = source_of();
  source.end = 2;
  const auto training = load(source);
  ASSERT_NE(training, nullptr);
  EXPECT_THAT(inputs(*training), ElementsAre(-1, 1));
  Source test = source_of();
  test.begin = 2;
  test.end = 3;
  test.fitted = training->fitted_columns();
  EXPECT_THAT(inputs(*load(test)), ElementsAre(998));
  columns_[0].mean = 1;
  columns_[0].deviation = 4;
  EXPECT_THAT(inputs(*load(source_of())), ElementsAre(0, 0.5F, 249.75F));
}

TEST_F(ColumnsTest, StandardCountsTheNumberOfAMissingValueInEachFormat) {
  columns_ = {number("x"), label("k")};
  columns_[0].normalise = Normalise::kStandard;
  columns_[0].missing = 1;
  EXPECT_THAT(inputs(*load_text("x,k\n,0\n3,0\n,1\n3,1\n")), ElementsAre(-1, 1, -1, 1));
  folder_.write("a.jsonl", R"({"k":0}
{"k":0,"x":3}
{"k":1,"x":null}
{"k":1,"x":3}
)");
  Source source = source_of("a.jsonl");
  source.format = DataFormat::kJsonl;
  EXPECT_THAT(inputs(*load(source)), ElementsAre(-1, 1, -1, 1));
}

// A file of more than 1 MiB is read in several parts.
TEST_F(ColumnsTest, LargeFileFitsByTheTrainingRecordsAlone) {
  columns_ = {category("w"), label("k")};
  constexpr std::uint64_t kBegin = 100'000;
  constexpr std::uint64_t kEnd = 500'000;
  std::string text = "w,k\n";
  for (std::uint64_t i = 0; i < 600'000; ++i)
    text += std::string(i < kBegin ? "before"
                        : i < kEnd ? "within"
                                   : "after") +
            (i == kBegin || i + 1 == kEnd ? " the edge" : "") + ",0\n";
  folder_.write("a.csv", text);
  Source source = source_of();
  source.begin = kBegin;
  source.end = kEnd;
  const auto training = load(source);
  ASSERT_NE(training, nullptr);
  EXPECT_THAT(training->fitted_columns()->columns[0].vocabulary, ElementsAre("within", "within the edge"));
}

TEST_F(ColumnsTest, TheTestSetUsesTheVocabularyOfTheTrainingSet) {
  columns_ = {category("w"), label("k")};
  folder_.write("1.csv", "w,k\nb,yes\n");
  folder_.write("2.csv", "k,w\nno,a\n");
  folder_.write("test.csv", "w,k\nc,yes\na,no\nb,yes\n");
  const auto training = load(source_of("?.csv"));
  ASSERT_NE(training, nullptr);
  EXPECT_THAT(categories(*training), ElementsAre(2, 1));
  EXPECT_THAT(labels(*training), ElementsAre(1, 0));
  Source test = source_of("test.csv");
  test.fitted = training->fitted_columns();
  const auto dataset = load(test);
  ASSERT_NE(dataset, nullptr);
  EXPECT_THAT(categories(*dataset), ElementsAre(0, 1, 2));
  EXPECT_THAT(labels(*dataset), ElementsAre(1, 0, 1));
  folder_.write("test.csv", "w,k\na,yes\na,maybe\n");
  expect_error(test, ErrorCode::kData,
               {"test.csv:3: the label 'maybe' in column 'k' isn't one of the 2 labels ('no', 'yes')"});
}

TEST_F(ColumnsTest, LabelsLoseTheCharactersOfStripAtTheirEnd) {
  columns_ = {number("x"), label("k")};
  columns_[1].strip = ".";
  columns_[1].vocabulary = {"<=50K", ">50K"};
  EXPECT_THAT(labels(*load_text("x,k\n1, >50K.\n1,<=50K\n1,>50K\n")), ElementsAre(1, 0, 1));
  expect_bad("x,k\n1,>50K.\n1,.\n", {"a.csv:3: no label in column 'k'"});
}

TEST_F(ColumnsTest, LabelsThatAreNumbersStayNumbers) {
  columns_ = {number("x"), label("k")};
  EXPECT_THAT(values<float>(*load_text("x,k\n1,0.5\n1,-2\n"), "labels"), ElementsAre(0.5F, -2));
  EXPECT_THAT(values<float>(*load_text("x,k\n1,0.5\n1,1e-400\n"), "labels"), ElementsAre(0.5F, 0));
  for (const std::string nan : {"nan", "-nan", "+NaN"})
    expect_bad("x,k\n1,0.5\n1," + nan + "\n", {"a.csv:3: no label in column 'k'"});
}

TEST_F(ColumnsTest, LabelsWithAPlusAreNumbers) {
  columns_ = {number("x"), label("k")};
  EXPECT_THAT(labels(*load_text("x,k\n+1,+1\n1,1\n1,0\n")), ElementsAre(1, 1, 0));
  EXPECT_THAT(values<float>(*load_text("x,k\n1,+1\n1,-1\n"), "labels"), ElementsAre(1, -1));
  columns_[1].vocabulary = {"-1", "+1"};
  EXPECT_THAT(labels(*load_text("x,k\n1,+1\n1,-1\n")), ElementsAre(1, 0));
}

TEST_F(ColumnsTest, HashesNeverChange) {
  columns_ = {category("w"), category("v"), category("both"), label("k")};
  columns_[0].hash = 1000;
  columns_[1].vocabulary = {"x", "y"};
  columns_[2].cross = {"w", "v"};
  columns_[2].hash = 100;
  // FNV-1a: of "a" 12638187200555641996, of "" 14695981039346656037.
  const std::vector<std::int64_t> found = categories(*load_text("w,v,k\na,x,0\n,y,0\na,y,0\n"));
  ASSERT_EQ(found.size(), 9U);
  EXPECT_EQ(found[0], 996);
  EXPECT_EQ(found[3], 37);
  EXPECT_EQ(found[6], 996);
  EXPECT_NE(found[2], found[8]) << "the second word counts too";
}

TEST_F(ColumnsTest, OneHotMakesANumberOfEachCategory) {
  columns_ = {number("x"), category("w"), number("y"), label("k")};
  columns_[1].one_hot = columns_[2].one_hot = true;
  columns_[2].boundaries = {10, 20};
  const auto dataset = load_text("x,w,y,k\n5,b,9,0\n6,a,20,1\n");
  // w has the words a and b, and others; y has three ranges.
  EXPECT_THAT(inputs(*dataset), ElementsAre(5, 0, 0, 1, 1, 0, 0,  //
                                            6, 0, 1, 0, 0, 0, 1));
  ASSERT_EQ(dataset->columns().size(), 2U) << "there are no categories";
  const std::vector<ColumnPart>& parts = dataset->columns()[0].parts;
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1].first, 1U);
  EXPECT_THAT(parts[1].shape, ElementsAre(3U));
  EXPECT_EQ(parts[2].first, 4U);
  Source other = source_of("b.csv");
  other.fitted = dataset->fitted_columns();
  folder_.write("b.csv", "x,w,y,k\n7,never seen,10,0\n");
  EXPECT_THAT(inputs(*load(other)), ElementsAre(7, 1, 0, 0, 0, 1, 0));
}

TEST_F(ColumnsTest, OneHotOfAHashOrAVocabularyHasItsSize) {
  columns_ = {category("w"), category("v"), number("x"), label("k")};
  columns_[0].one_hot = columns_[1].one_hot = true;
  columns_[0].hash = 4;  // of "a" and "" see HashesNeverChange
  columns_[1].vocabulary = {"red", "blue"};
  const auto dataset = load_text("w,v,x,k\na,blue,7,0\n,green,8,1\na,red,9,0\n");
  EXPECT_THAT(inputs(*dataset), ElementsAre(1, 0, 0, 0, 0, 0, 1, 7,  //
                                            0, 1, 0, 0, 1, 0, 0, 8,  //
                                            1, 0, 0, 0, 0, 1, 0, 9));
  EXPECT_THAT(dataset->columns()[0].parts[0].shape, ElementsAre(4U));
  EXPECT_THAT(dataset->columns()[0].parts[1].shape, ElementsAre(3U));
}

TEST_F(ColumnsTest, OneHotOfManyWordsIsRefused) {
  columns_ = {category("w"), label("k")};
  columns_[0].one_hot = true;
  std::string text = "w,k\n";
  for (std::uint32_t i = 0; i < kMaxOneHot; ++i) text += std::to_string(i) + ",0\n";
  expect_bad(text, {"data.columns.w.one_hot makes 65537 numbers of each record", "data.columns.w.vocabulary"});
}

TEST_F(ColumnsTest, WeightsAreNumbersOfAtLeastZero) {
  columns_ = {number("x"), column_of("w", ColumnKind::kWeight), label("k")};
  const auto dataset = load_text("x,w,k\n5,0.5,0\n6,0,1\n");
  EXPECT_THAT(values<float>(*dataset, "weights"), ElementsAre(0.5F, 0.0F));
  EXPECT_THAT(inputs(*dataset), ElementsAre(5, 6));
  expect_bad("x,w,k\n5,-1,0\n", {"a.csv:2: the weight -1", "in column 'w', expected at least 0"});
  expect_bad("x,w,k\n5,,0\n", {"a.csv:2: no value in column 'w'", "data.columns.w.missing"});
  columns_[1].missing = 3.0;
  EXPECT_THAT(values<float>(*load_text("x,w,k\n5,,0\n6,2,1\n"), "weights"), ElementsAre(3.0F, 2.0F));
}

TEST_F(ColumnsTest, WrongFilesAreRefusedWithFileLineAndColumn) {
  columns_ = {number("x"), category("w"), label("k")};
  expect_bad("x,v,k\n1,a,0\n", {"a.csv:1: no column 'w' in the first line", "3 columns: 'x', 'v', 'k'"});
  expect_bad("x,w,k\n1,a,0\n\nten,b,0\n", {"a.csv:4: 'ten' in column 'x', expected a finite number"});
  expect_bad("x,w,k\nnan,a,0\n", {"no value in column 'x'"});
  expect_bad("x,w,k\n1e99,a,0\n", {"a.csv:2: infinity in column 'x'"});
  expect_bad("x,w,k\n1,a\n", {"a.csv:2: 2 fields, expected 3 as on line 1"});
  expect_bad("x,w,k\n1,\"a\n2,b,0\n", {"a.csv:2: a quoted field isn't closed"});
  expect_bad("x,w,k\n1,\"a\"b,0\n", {"a.csv:2: text after the closing quote"});
  expect_bad("x,w,k\n1,a\"b,0\n", {"a.csv:2: a quote within the field"});
  expect_bad("x,w,k\n", {"a.csv: has no records"});
  expect_bad("", {"a.csv: has no records"});
  expect_bad("x,w,k\n1,\"a\nb\",0\nten,b,0\n", {"a.csv:4: 'ten'"});
}

}  // namespace
}  // namespace disttrain::input
