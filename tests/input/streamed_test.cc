// Data sets that are read from their files for each batch give the same records as those in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "input/data_figures.h"
#include "tests/input/streamed_fixture.h"

namespace disttrain::input {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(Streamed, RecordsAreThoseOfTheSameSetInMemory) {
  write_files(3, 500);
  const auto memory = load(source_of(1 << 30));
  const auto streamed = load(source_of(1));
  EXPECT_EQ(memory->figures(), nullptr);
  ASSERT_NE(streamed->figures(), nullptr);
  expect_equal(*memory, *streamed, all_of(1500));
  expect_equal(*memory, *streamed, {1499, 0, 499, 500, 501, 7, 7, 1000});
  EXPECT_GT(streamed->figures()->decode_ns, 0U);
}

TEST_F(Streamed, OneHotColumnsAndWeightsAreThoseOfTheSameSetInMemory) {
  write_files(3, 500);
  const auto load_with = [this](std::uint64_t memory) {
    Source source = source_of(memory);
    source.columns[1].one_hot = true;
    source.columns.push_back(column_of("weight", ColumnKind::kWeight));
    source.columns.back().from = "x";
    return load(source);
  };
  const auto memory = load_with(1 << 30);
  const auto streamed = load_with(1);
  ASSERT_EQ(memory->columns().size(), 3U);
  ASSERT_EQ(streamed->columns().size(), 3U);
  const std::vector<std::uint64_t> indices = {1499, 0, 499, 500, 501, 7, 7, 1000};
  ASSERT_EQ(memory->columns()[0].elements, 1U + 8U);
  EXPECT_EQ(streamed->columns()[0].elements, 9U);
  EXPECT_EQ(gather<float>(*memory, indices, 0, DType::kFloat32, 9),
            gather<float>(*streamed, indices, 0, DType::kFloat32, 9));
  for (const Dataset* each : {memory.get(), streamed.get()}) {
    EXPECT_EQ(each->columns()[2].name, "weights");
    EXPECT_THAT(gather<float>(*each, indices, 2, DType::kFloat32, 1),
                testing::ElementsAre(1499, 0, 499, 500, 501, 7, 7, 1000));
  }
}

TEST_F(Streamed, RecordsOfARangeAreThoseOfTheSameSetInMemory) {
  write_files(3, 500);
  Source part = source_of(1 << 30);
  part.begin = 490;
  part.end = 1203;
  const auto memory = load(part);
  part.memory = 1;
  const auto streamed = load(part);
  expect_equal(*memory, *streamed, all_of(713));
}

// The order of "blocks" is made of blocks, and must not depend on a worker's memory.
TEST_F(Streamed, SmallSetHasBlocksIfTheyAreShuffled) {
  write_files(3, 500);
  const auto memory = load(source_of(1 << 30));
  const auto blocks = load(source_of(1 << 30, ShuffleKind::kBlocks));
  EXPECT_THAT(blocks->blocks(), testing::ElementsAre(0U, 500U, 1000U));
  expect_equal(*memory, *blocks, {1499, 0, 499, 500, 501, 7, 7, 1000});
}

// A short line of libsvm may have very many numbers.
TEST_F(Streamed, SmallFilesOfLargeRecordsAreStreamed) {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += std::to_string(i % 2) + " " + std::to_string(i + 1) + ":5\n";
  folder_.write("a.svm", lines);
  Source source = input::source(DataFormat::kLibsvm, folder_, "a.svm");
  source.columns = {column_section("features", ColumnKind::kNumeric), column_section("label", ColumnKind::kLabel)};
  source.columns[0].shape = {10'000};
  source.memory = 1 << 20;
  const auto streamed = load(source);
  ASSERT_NE(streamed, nullptr);
  EXPECT_NE(streamed->figures(), nullptr);
  source.memory = 1 << 30;
  const auto memory = load(source);
  EXPECT_EQ(memory->figures(), nullptr);
  const Rows rows = rows_of(*streamed, {299, 0});
  EXPECT_EQ(rows.inputs, rows_of(*memory, {299, 0}).inputs);
  EXPECT_EQ(rows.inputs[299], 5.0F);
  EXPECT_EQ(rows.labels, (std::vector<std::int64_t>{1, 0}));
}

// They are decoded in several tables.
TEST_F(Streamed, ErrorsInLargeRecordsNameThem) {
  folder_.write("a.svm", "1 1:5\n0 2:5\n\n1 1:5 3:x\n1 1:5\n");
  Source source = input::source(DataFormat::kLibsvm, folder_, "a.svm");
  source.columns = {column_section("features", ColumnKind::kNumeric), column_section("label", ColumnKind::kLabel)};
  source.columns[0].shape = {1 << 21};
  source.memory = 1 << 30;
  EXPECT_THAT(error_of(source, ErrorCode::kData), HasSubstr("a.svm\", record 2: 'x' in column 'features'"));
  source.columns[1].vocabulary = {"1", "2"};
  EXPECT_THAT(error_of(source, ErrorCode::kData), HasSubstr("a.svm\", record 1: the label '0'"));
}

TEST_F(Streamed, CompressedFilesNeedBlocksAndMemoryForThem) {
  write_files(5, 300, true);
  EXPECT_THAT(error_of(source_of(1), ErrorCode::kConfig), HasSubstr("set data.shuffle = \"blocks\", or decompress"));
  EXPECT_THAT(error_of(source_of(1, ShuffleKind::kBlocks), ErrorCode::kConfig),
              testing::AllOf(HasSubstr("raise data.memory"), HasSubstr("lower data.shuffle_window")));
  EXPECT_THAT(error_of(source_of(1, ShuffleKind::kNone), ErrorCode::kConfig),
              testing::AllOf(HasSubstr("raise data.memory"), Not(HasSubstr("data.shuffle_window"))));
}

TEST_F(Streamed, ErrorSaysHowMuchMoreMemoryTheRecordsNeed) {
  write_files(5, 300, true);
  EXPECT_THAT(error_of(source_of(1000), ErrorCode::kConfig),
              testing::ContainsRegex("the records take [1-9][0-9]* KiB, but data may use 0 KiB of memory"));
  EXPECT_THAT(error_of(source_of(1000, ShuffleKind::kNone), ErrorCode::kConfig),
              testing::ContainsRegex("of 2 blocks take up to [1-9][0-9]* KiB, but data may use 0 KiB of memory"));
}

TEST_F(Streamed, SeveralThreadsGetTheSameBlocks) {
  write_files(40, 300, true);
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) bytes += entry.file_size();
  const auto memory = load(source_of(1 << 30));
  Source source = source_of(4 * bytes - 1, ShuffleKind::kBlocks);
  source.shuffle_window = 1;
  const auto streamed = load(source);
  ASSERT_NE(streamed->figures(), nullptr);
  EXPECT_EQ(streamed->blocks().size(), 40U);
  EXPECT_EQ(streamed->blocks()[1], 300U);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t first = 0; first < 12'000; first += 50) {
        std::vector<std::uint64_t> indices;
        for (std::uint64_t i = 0; i < 50; ++i) indices.push_back((first * (thread % 2 == 0 ? 1 : 7) + i * 97) % 12'000);
        expect_equal(*memory, *streamed, indices);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Streamed, WrongValueIsAnErrorWithFileRecordAndColumn) {
  write_files(1, 100);
  Source source = source_of(1);
  source.columns[0].normalise = Normalise::kNone;  // so that nothing is read when the set is opened
  source.columns[1].vocabulary = {"w", "ww"};
  source.columns[2].vocabulary = {"0", "1", "2"};
  std::string text = read_whole(folder_ / "part-0.csv");
  text.replace(text.find("\n77,") + 1, 2, "ab");
  folder_.write("part-0.csv", text);
  const auto dataset = load(source);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(gather_error(*dataset, {76, 78}), "");
  EXPECT_THAT(gather_error(*dataset, {77}),
              testing::AllOf(HasSubstr("part-0.csv"), HasSubstr("record 77"), HasSubstr("'x'"), HasSubstr("'ab'")));
}

TEST_F(Streamed, FilesWithOtherHeadersAreRefused) {
  write_files(1, 10);
  folder_.write("part-1.csv", "w,x,k\nw,1,0\n");
  EXPECT_THAT(error_of(source_of(1), ErrorCode::kData), HasSubstr("part-1.csv:1: the header has other columns"));
}

TEST_F(Streamed, FileOfBlankLinesHasNoRecords) {
  folder_.write("part-0.csv", "x,w,k\n1,a,0\n");
  for (const char* blank : {"\n", " \n\n\t\r\n", "\xEF\xBB\xBF", "\xEF\xBB\xBF\n", ""}) {
    folder_.write("part-1.csv", blank);
    const std::string error =
        folder_ / "part-1.csv: has no records, expected at least one: fetch it again or leave it out";
    Source streamed = source_of(1);
    EXPECT_EQ(error_of(streamed, ErrorCode::kData), error);
    EXPECT_EQ(error_of(source_of(1 << 30), ErrorCode::kData), error);
    streamed.columns[0].normalise = Normalise::kNone;
    EXPECT_EQ(error_of(streamed, ErrorCode::kData), error);
  }
}

TEST_F(Streamed, LabelBeyondTheModelsOutputsIsAnError) {
  write_files(1, 10);
  const auto dataset = load(source_of(1));
  std::vector<std::int64_t> k(1);
  const std::vector<ColumnOut> outs = {
      {{.name = "k", .dtype = DType::kInt64, .shape = {}, .limit = 2}, std::as_writable_bytes(std::span(k)), {2, 0}}};
  EXPECT_TRUE(dataset->gather(std::vector<std::uint64_t>{1}, outs, {}));
  const Status wrong = dataset->gather(std::vector<std::uint64_t>{2}, outs, {});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, testing::AllOf(HasSubstr("record 2"), HasSubstr("the label is 2")));
}

// The labels of a test set are read with each batch, so its largest one isn't known before.
TEST_F(Streamed, LabelsOfATestSetFitIntoTheTypeOfTheColumn) {
  folder_.write("part-0.csv", "x,w,k\n1,a,0\n2,a,200\n");
  folder_.write("test.csv", "x,w,k\n1,a,200\n2,a,300\n");
  const auto training = load(source_of(1));
  ASSERT_NE(training, nullptr);
  Source of_test = source_of(1);
  of_test.files = "test.csv";
  of_test.fitted = training->fitted_columns();
  const auto dataset = load(of_test);
  ASSERT_NE(dataset, nullptr);
  std::vector<std::uint8_t> labels(1);
  const auto gathered = [&](std::uint64_t record) {
    const std::vector<ColumnOut> outs = {
        {{.name = "y", .dtype = DType::kUint8, .shape = {}}, std::as_writable_bytes(std::span(labels)), {2, 0}}};
    const Status status = dataset->gather(std::vector<std::uint64_t>{record}, outs, {});
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(gathered(0), "");
  EXPECT_EQ(labels[0], 200);
  EXPECT_THAT(gathered(1), testing::HasSubstr("the label is 300, but the model's column \"y\" takes 0 to 255: "
                                              "correct the record, or change the model"));
}

}  // namespace
}  // namespace disttrain::input
