#include <gtest/gtest.h>

#include "input/unlabelled_dataset.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

constexpr auto kCsv = DataFormat::kCsv;
using Floats = std::vector<float>;
using Labels = std::vector<std::int64_t>;

class Csv : public testing::Test {
 protected:
  std::unique_ptr<Dataset> load_text(const std::string& text) {
    folder_.write("a.csv", text);
    return load(source(kCsv, folder_, "a.csv"));
  }

  void expect_bad(const std::string& text, const std::vector<std::string>& parts) {
    folder_.write("a.csv", text);
    expect_error(source(kCsv, folder_, "a.csv"), ErrorCode::kData, parts);
  }

  Folder folder_;
};

TEST_F(Csv, NumbersAreInputsAndTheLastColumnIsTheLabel) {
  const auto dataset = load_text("1,2.5,0\n-3,4e1,2\n");
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(input_elements(*dataset), 2u);
  EXPECT_EQ(all_rows(*dataset).inputs, (Floats{1, 2.5F, -3, 40}));
  EXPECT_EQ(all_rows(*dataset).labels, (Labels{0, 2}));
}

TEST_F(Csv, HeaderLineIsSkipped) {
  EXPECT_EQ(load_text("width,height,kind\n1,2,0\n")->records(), 1u);
}

TEST_F(Csv, NoticeTellsOfAFirstRecordThatMayBeAHeader) {
  const auto read = load_text("\n0,1,kind\n1,2,cat\n3,4,dog\n5,6,cat\n");
  EXPECT_EQ(read->records(), 4u);
  EXPECT_EQ(
      read->notice(),
      folder_ /
          "a.csv:2: the label 'kind' is on no other line, so this line may be a header, but it is "
          "read as a record, because some of its input columns are numbers; if it is a header, remove it, or name the "
          "columns by words");
  EXPECT_EQ(load_text("a,b,kind\n1,2,cat\n3,4,dog\n")->notice(), "");
  EXPECT_EQ(load_text("1,2,cat\n3,4,dog\n5,6,cat\n")->notice(), "");
  EXPECT_EQ(load_text("1,2,cat\n")->notice(), "");
  EXPECT_EQ(load_text("1,2,0\n3,4,1\n")->notice(), "");
}

TEST_F(Csv, NoticeOfAHeaderLooksAtAllFiles) {
  folder_.write("1.csv", "0,1,kind\n1,2,cat\n");
  folder_.write("2.csv", "0,1,kind\n3,4,dog\n5,6,cat\n");
  const Source all = source(kCsv, folder_, "?.csv");
  EXPECT_NE(load(all)->notice().find("'kind'"), std::string::npos);
  folder_.write("2.csv", "3,4,dog\n5,6,kind\n");
  EXPECT_EQ(load(all)->notice(), "");
  for (const std::string name : {"1.csv", "2.csv"}) folder_.write(name, "1,2," + name + "\n");
  EXPECT_EQ(load(all)->notice(), "") << "each file has one record";
}

TEST_F(Csv, BlanksBlankLinesCarriageReturnsAndAMissingLastNewlineDoNotMatter) {
  const auto dataset = load_text("\xEF\xBB\xBF a , b, c\r\n\r\n 1 ,\t+2, 1\r\n   \n3,4,0");
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(all_rows(*dataset).inputs, (Floats{1, 2, 3, 4}));
  EXPECT_EQ(all_rows(*dataset).labels, (Labels{1, 0}));
}

TEST_F(Csv, QuotedFieldsMayHoldCommasQuotesAndLineEnds) {
  const auto dataset = load_text("\"a, b\",\"say \"\"x\"\"\",k\n\"1\",2,\"cat,\nlong\"\n3,4,dog\n");
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(all_rows(*dataset).inputs, (Floats{1, 2, 3, 4}));
  EXPECT_EQ(dataset->label_names(), (std::vector<std::string>{"cat,\nlong", "dog"}));
}

TEST_F(Csv, TextLabelsAreNumberedInSortedOrderOverAllFiles) {
  folder_.write("1.csv", "x,k\n1,dog\n2,cat\n");
  folder_.write("2.csv", "x,k\n3,ant\n4,dog\n");
  const auto dataset = load(source(kCsv, folder_, "?.csv"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(all_rows(*dataset).inputs, (Floats{1, 2, 3, 4}));
  EXPECT_EQ(all_rows(*dataset).labels, (Labels{2, 1, 0, 2}));
  EXPECT_EQ(largest_label(*dataset), 2);
}

TEST_F(Csv, TestSetTakesTheNumbersOfTheTrainingSet) {
  folder_.write("a.csv", "1,dog\n");
  Source test = source(kCsv, folder_, "a.csv");
  test.label_names = {"ant", "cat", "dog"};
  EXPECT_EQ(all_rows(*load(test)).labels, (Labels{2}));
  test.label_names = {"ant", "cat"};
  expect_error(test, ErrorCode::kData, {"a.csv:1:", "'dog'", "training set"});
  folder_.write("a.csv", "1,0\n");
  expect_error(test, ErrorCode::kData, {"a.csv:1:", "numbers, expected text"});
}

TEST_F(Csv, TestSetOfWordsDoesNotFitATrainingSetOfNumbers) {
  folder_.write("a.csv", "1,dog\n");
  Source test = source(kCsv, folder_, "a.csv");
  test.label_names.emplace();
  expect_error(test, ErrorCode::kData, {"a.csv:1:", "'dog' isn't a number as those of the training set"});
  folder_.write("a.csv", "1,3\n");
  EXPECT_EQ(all_rows(*load(test)).labels, (Labels{3}));
}

// As [data.columns] reads such fields.
TEST_F(Csv, BlanksAndLineEndsWithinQuotesDoNotMatter) {
  const auto numbers = load_text("a,k\n\" 1\n\",\"10\n\"\n\"2 \",\t9 \n");
  ASSERT_NE(numbers, nullptr);
  EXPECT_EQ(all_rows(*numbers).inputs, (Floats{1, 2}));
  EXPECT_EQ(all_rows(*numbers).labels, (Labels{10, 9}));
  const auto words = load_text("1,\"cat \"\n1,cat\n1,\"\r\ncat\"\n");
  ASSERT_NE(words, nullptr);
  EXPECT_EQ(words->label_names(), (std::vector<std::string>{"cat"}));
  expect_bad("1,0\n1,\" \"\n", {"a.csv:2:", "no label"});
}

TEST_F(Csv, BlanksOfUnicodeDoNotMatter) {
  const auto numbers = load_text(
      "\xEF\xBB\xBF\xC2\xA0"
      "a,k\n\xC2\xA0"
      "1,\xEF\xBB\xBF"
      "10\n2\v,\"9\f\"\n3,\xE3\x80\x80"
      "2\n");
  ASSERT_NE(numbers, nullptr);
  EXPECT_EQ(all_rows(*numbers).inputs, (Floats{1, 2, 3}));
  EXPECT_EQ(all_rows(*numbers).labels, (Labels{10, 9, 2}));
  EXPECT_EQ(load_text("1,cat\xC2\xA0\n1,cat\n1,\"\xEF\xBB\xBF"
                      "cat\"\n")
                ->label_names(),
            (std::vector<std::string>{"cat"}));
}

TEST_F(Csv, WholeNumbersWrittenWithAPointAreLabels) {
  EXPECT_EQ(all_rows(*load_text("1,3.0\n1,0\n")).labels, (Labels{3, 0}));
}

TEST_F(Csv, FractionalAndNegativeLabelsAreTargets) {
  EXPECT_EQ(all_rows(*load_text("1,3.5\n1,0\n")).targets, (Floats{3.5F, 0}));
  EXPECT_EQ(all_rows(*load_text("1,-1\n1,1\n")).targets, (Floats{-1, 1}));
}

TEST_F(Csv, PackedFilesAreRead) {
  folder_.write("a.csv.gz", gzip("1,2,0\n"));
  EXPECT_EQ(load(source(kCsv, folder_, "a.csv.gz"))->records(), 1u);
}

TEST_F(Csv, NumbersTooSmallForFloatAreZero) {
  EXPECT_EQ(all_rows(*load_text("1e-999,0\n")).inputs, (Floats{0}));
}

// ---- what can be wrong ----

TEST_F(Csv, TextAmongTheInputsIsPlaced) {
  expect_bad("a,b,k\n1,2,0\n1,x,0\n", {folder_ / "a.csv:3:", "'x' in column 2 ('b')", "number"});
}

TEST_F(Csv, MissingAndEndlessNumbersAreRefused) {
  expect_bad("1,2,0\n1,,0\n", {"a.csv:2:", "nothing in column 2"});
  expect_bad("1,2,0\nnan,2,0\n", {"a.csv:2:", "'nan' in column 1"});
  expect_bad("1,2,0\n1,1e999,0\n", {"a.csv:2:", "'1e999' in column 2"});
  expect_bad("1,2,0\n1,1e39,0\n", {"a.csv:2:", "'1e39' in column 2"});
}

TEST_F(Csv, OtherNumberOfFieldsIsCounted) {
  expect_bad("1,2,0\n\n1,0\n", {"a.csv:3:", "2 fields, expected 3 as on line 1"});
}

TEST_F(Csv, LinesAreCountedThroughQuotedLineEnds) {
  expect_bad("\"a\n\n\",b,k\n1,2,0\n1,2\n", {"a.csv:5:"});
}

TEST_F(Csv, LinesThatEndInCrAloneArePlaced) {
  for (const char* text : {"a,b,k\r1,2,0\r3,4,1\r", "1,2,0\r3,4,1\r", "\n \n1,2,0\r3,4,1\n"})
    expect_bad(text, {"a.csv:", "a line that ends in CR alone, expected LF or CRLF"});
  EXPECT_EQ(load_text("\"a\rb\",k\r\r\n1,0\r\n")->records(), 1u);
}

TEST_F(Csv, BadQuotingIsPlaced) {
  expect_bad("1,2,0\n1,\"2,0\n", {"a.csv:2:", "isn't closed"});
  expect_bad("1,2,0\n1,\"2\"x,0\n", {"a.csv:2:", "after the closing quote"});
  expect_bad("1,2,0\n1,2\"\",0\n", {"a.csv:2:", "a quote within"});
}

TEST_F(Csv, LongTextsAreCutInErrors) {
  const std::string text(1000, 'a');
  const std::string shown = "'" + std::string(40, 'a') + "...'";
  expect_bad(text + ",k\nx,0\n", {"column 1 (" + shown + ")"});
  folder_.write("b.csv", "1," + text + "\n");
  Source test = source(kCsv, folder_, "b.csv");
  test.label_names = {"cat" + text, "dog" + text};
  expect_error(test, ErrorCode::kData, {"the label " + shown, "labels ('cat" + std::string(37, 'a') + "...' ... 'dog"});
}

TEST_F(Csv, LabelsOfBothKindsAreRefused) {
  expect_bad("1,2,0\n1,2,cat\n", {"a.csv:2:", "'cat' is text, expected a number as on line 1"});
  expect_bad("a,b,c\n1,2,cat\n1,2,7\n", {"a.csv:3:", "'7' is a number, expected text as on line 2"});
  expect_bad("1,2,\n", {"a.csv:1:", "no label"});
}

TEST_F(Csv, LabelsThatAreNoNumbersAreRefused) {
  for (const char* label : {"nan", "NaN", "-nan"})
    expect_bad(std::string("1,0\n2,") + label + "\n", {"a.csv:2:", "no label"});
  for (const char* label : {"inf", "-Infinity"})
    for (const char* first : {"1,0\n", "1,cat\n", ""})
      expect_bad(std::string(first) + "2," + label + "\n", {"a.csv:", "is infinite, expected a finite number"});
  expect_bad("1,cat\n2,c\xFCt\n", {"a.csv:2:", "the label has the byte 0xfc, which isn't UTF-8"});
  expect_bad(std::string("\xFF\xFE\x31\0,\0", 6), {"a.csv", "UTF-16"});
}

// A loss such as mse takes no classes.
TEST_F(Csv, WordsForALossOfNumbersAreRefused) {
  folder_.write("a.csv", "x,y\n1,no\n2,yes\n");
  Source source = input::source(kCsv, folder_, "a.csv");
  EXPECT_NE(load(source), nullptr);
  source.target_taker = "model.loss = \"mse\"";
  expect_error(source, ErrorCode::kData, {"a.csv:2: the label 'no' isn't a number, which model.loss = \"mse\" needs"});
}

// PyTorch's ignore_index may be -100.
TEST_F(Csv, WholeLabelsBelowZeroStayWhole) {
  const auto dataset = load_text("1,2\n2,-100\n");
  EXPECT_EQ(dataset->columns()[1].dtype, DType::kInt64);
  EXPECT_FALSE(dataset->columns()[1].are_classes);
  EXPECT_EQ(dataset->columns()[1].smallest, -100);
  EXPECT_EQ(gather<std::int64_t>(*dataset, {0, 1}, 1, DType::kInt64, 1), (Labels{2, -100}));
}

TEST_F(Csv, HeaderThatLooksLikeDataIsExplained) {
  expect_bad("0,1,label\n1,2,0\n", {"a.csv:2:", "header's columns must all be text"});
}

// Otherwise the first record would be lost without a word.
TEST_F(Csv, FirstLineWithANumberIsNoHeader) {
  const std::string advice = "; if the line is a header, remove it, or name all its columns by words";
  for (const char* line : {"NA,NA,0", "nan,nan,0", "inf,inf,0", "?,?,0", "1e400,-1e400,0", "a,-nan,cat", "a,+NaN,cat",
                           "a,Infinity,cat", "a,1e39,cat", "a,b,nan", "a,b,-inf", "a,b,1e400"}) {
    const std::string text = line;
    const std::string error = "'" + text.substr(0, text.find(',')) + "' in column 1, expected a finite number";
    expect_bad("\n" + text + "\n1,2,1\n3,4,0\n", {"a.csv:2: " + error, advice});
    folder_.write("a.csv", "1,2," + std::string(text.ends_with("cat") ? "cat" : "1") + "\n" + text + "\n");
    const Result<std::unique_ptr<Dataset>> second = load_dataset(source(kCsv, folder_, "a.csv"));
    ASSERT_FALSE(second) << line;
    EXPECT_NE(second.error().message.find("a.csv:2: " + error), std::string::npos) << second.error().message;
    EXPECT_EQ(second.error().message.find("header"), std::string::npos) << second.error().message;
    folder_.write("a.csv", text + "\n1,2,1\n");
    expect_error(without_labels(source(kCsv, folder_, "a.csv")), ErrorCode::kData, {"a.csv:1: " + error});
  }
  expect_bad(",x,y\n0,1,0\n", {"a.csv:1: nothing in column 1", advice});
  expect_bad("0,1,\n0,1,0\n", {"a.csv:1: no label in the last column", advice});
  expect_bad("0,1,inf\n0,1,0\n", {"a.csv:1: the label 'inf' is infinite", advice});
  EXPECT_EQ(load_text("NA,info,\n1,2,0\n")->records(), 1u);
}

TEST_F(Csv, NoticeTellsOfAHeaderThatMayBeARecord) {
  EXPECT_EQ(load_text("NA,?,cat\n1,2,dog\n3,4,cat\n")->notice(),
            folder_ /
                "a.csv: the first line is read as a header, because it has no numbers, but its last field 'cat' "
                "is a label of other lines, so it may be a record; if it is one, write its inputs as numbers");
  folder_.write("1.csv", "NA,?,cat\n1,2,dog\n");
  folder_.write("2.csv", "1,2,cat\n");
  EXPECT_NE(load(source(kCsv, folder_, "?.csv"))->notice().find("1.csv: the first line"), std::string::npos);
  EXPECT_EQ(load_text("NA,?,kind\n1,2,dog\n3,4,cat\n")->notice(), "");
}

TEST_F(Csv, EmptyFilesAreRefused) {
  expect_bad("", {"a.csv", "no records"});
  expect_bad("a,b\n", {"a.csv", "after its header line"});
  expect_bad("7\n", {"a.csv:1:", "one field"});
}

TEST_F(Csv, FilesMustBeAlike) {
  folder_.write("1.csv", "a,b,k\n1,2,0\n");
  folder_.write("2.csv", "b,a,k\n1,2,0\n");
  expect_error(source(kCsv, folder_, "?.csv"), ErrorCode::kData, {"2.csv", "column 1 is 'b', expected 'a'"});
  folder_.write("2.csv", "1,0\n");
  expect_error(source(kCsv, folder_, "?.csv"), ErrorCode::kData, {"2.csv:1:", "2 fields, expected 3"});
  folder_.write("2.csv", "1,2,cat\n");
  expect_error(source(kCsv, folder_, "?.csv"), ErrorCode::kData, {"2.csv:1:", "labels are text, expected numbers"});
}

TEST_F(Csv, HeaderOfEachFileIsComparedWithTheFirstOneFound) {
  folder_.write("1.csv", "1,2,0\n");
  folder_.write("2.csv", "a,b,k\n1,2,0\n");
  folder_.write("3.csv", "\nb,a,k\n\n1,2,0\n");
  expect_error(source(kCsv, folder_, "?.csv"), ErrorCode::kData,
               {folder_ / "3.csv:2: the header's column 1 is 'b', expected 'a' as in " + folder_ / "2.csv",
                "same order: correct the file"});
  folder_.write("3.csv", "a,b,kind\n3,4,1\n");
  const auto dataset = load(source(kCsv, folder_, "?.csv"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->header(), (std::vector<std::string>{"a", "b", "k"}));
  EXPECT_EQ(load_text("1,2,0\n")->header(), std::vector<std::string>());
}

TEST_F(Csv, TestSetHasTheHeaderOfTheTrainingSet) {
  Source test = source(kCsv, folder_, "test*");
  test.header = {"a", "b", "k"};
  folder_.write("test1", "5,6,0\n");
  folder_.write("test2", "a,b,k\n1,2,0\n");
  EXPECT_EQ(load(test)->records(), 2u) << "a file may lack a header";
  folder_.write("test2", "b,a,k\n1,2,0\n");
  expect_error(test, ErrorCode::kData,
               {folder_ / "test2:1: the header's column 1 is 'b', expected 'a' as in the training set"});
  folder_.write("test2", "a,b,kind\n1,2,0\n");
  EXPECT_EQ(load(test)->records(), 2u) << "the last column is the label, whatever its name is";
  folder_.write("test1", "a,k\n5,0\n");
  folder_.write("test2", "a,k\n1,0\n");
  expect_error(test, ErrorCode::kData, {"test1:1: the header has 2 columns, expected 3 as in the training set"});
}

TEST_F(Csv, LastColumnOfFilesToPredictMayHaveAnyName) {
  Source predicted = without_labels(source(kCsv, folder_, "a.csv"));
  predicted.header = {"a", "b", "k"};
  folder_.write("a.csv", "a,b,nothing\n1,2,0\n");
  EXPECT_EQ(load(predicted)->records(), 1u);
  folder_.write("a.csv", "b,a,k\n1,2,0\n");
  expect_error(predicted, ErrorCode::kData, {"a.csv:1: the header's column 1 is 'b', expected 'a'"});
}

TEST_F(Csv, LabelTooLargeForFloatIsPlaced) {
  folder_.write("1.csv", "1,0.5\n");
  folder_.write("2.csv", "x,y\n1,2\n2,-1e300\n");
  expect_error(source(kCsv, folder_, "?.csv"), ErrorCode::kData,
               {folder_ / "2.csv:3: the label '-1e300' is too large for float32: scale the labels"});
}

TEST_F(Csv, LabelsOfASigmoidAreFrom0To1) {
  folder_.write("1.csv", "1,0\n2,1\n3,0.25\n");
  folder_.write("2.csv", "x,y\n1,1\n2,-1\n");
  Source all = source(kCsv, folder_, "?.csv");
  EXPECT_EQ(load(all)->records(), 5u);
  all.sigmoid_outputs = 1;
  expect_error(all, ErrorCode::kData,
               {folder_ / "2.csv:3: the label '-1' in the last column, expected 0 to 1, as model.loss = "
                          "\"sigmoid_cross_entropy\" needs: if there are two labels, write them as 0 and 1, or add "
                          "[data.columns]"});
  Source first = source(kCsv, folder_, "1.csv");
  first.sigmoid_outputs = 1;
  EXPECT_EQ(all_rows(*load(first)).targets, (Floats{0, 1, 0.25F}));
  folder_.write("1.csv", "1,no\n2,yes\n");
  EXPECT_EQ(all_rows(*load(first)).labels, (Labels{0, 1})) << "words are classes";
  folder_.write("1.csv", "1,2\n2,0\n");
  expect_error(first, ErrorCode::kData, {"1.csv:1: the label '2'"});
  first.sigmoid_outputs = 3;
  EXPECT_EQ(all_rows(*load(first)).labels, (Labels{2, 0})) << "each of three outputs is a class";
}

TEST_F(Csv, LabelsKeyIsRefused) {
  folder_.write("a.csv", "1,0\n");
  expect_error(source(kCsv, folder_, "a.csv", "b.csv"), ErrorCode::kConfig, {"data.labels", "last column"});
}

TEST_F(Csv, EndlessRecordIsRefusedBeforeItFillsTheMemory) {
  folder_.write("a.csv.gz", gzip(std::string(20 * 1024 * 1024, '1')));
  expect_error(source(kCsv, folder_, "a.csv.gz"), ErrorCode::kData, {"a.csv.gz:1:", "record of more than"});
}

}  // namespace
}  // namespace disttrain::input
