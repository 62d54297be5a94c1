// Files and indexes that change while a job reads them for each batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/input/streamed_fixture.h"

namespace disttrain::input {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A file that is mapped and then cut ends the process by SIGBUS.
TEST_F(Streamed, IndexThatIsCutWhileItIsUsedIsAnError) {
  for (const ShuffleKind shuffle : {ShuffleKind::kEpoch, ShuffleKind::kBlocks}) {
    write_files(1, 100);
    const auto dataset = load(source_of(shuffle == ShuffleKind::kBlocks ? 1 << 20 : 1, shuffle));
    const std::string path = index_files().at(0);
    for (const std::uintmax_t bytes : {std::filesystem::file_size(path) - 1, std::uintmax_t{100}, std::uintmax_t{0}}) {
      std::filesystem::resize_file(path, bytes);
      EXPECT_THAT(gather_error(*dataset, {99, 3}),
                  AllOf(HasSubstr(path), HasSubstr("was changed while a job used it")));
    }
    std::filesystem::remove(path);
  }
}

// The record would begin within a line, and its values would be wrong without an error. A file that is too large to be
// compared as a whole may be changed so between two jobs, too.
TEST_F(Streamed, LineThatIsNotWhereItsIndexHasItIsAnError) {
  struct Lines {
    DataFormat format;
    std::string number;  // the columns' names in the file
    std::string label;
    std::string line_end;
    std::string content;
    std::uint64_t headers = 0;
  };
  std::vector<Lines> files = {{DataFormat::kCsv, "x", "k", "\n", "w,x,k\n", 1},
                              {DataFormat::kCsv, "1", "2", "\r\n", "\xEF\xBB\xBF"},
                              {DataFormat::kCsv, "1", "2", "\n", ""},
                              {DataFormat::kJsonl, "x", "k", "\r\n", ""},
                              {DataFormat::kLibsvm, "features", "label", "\n", ""}};
  constexpr std::uint64_t kRecords = 1000;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    const std::string x = std::to_string(i);
    const std::string k = std::to_string(i % 3);
    const std::string w(1 + i % 7, 'w');
    const std::string quoted = "\"" + w + (i > kRecords / 2 && i % 5 == 0 ? "\n" : "") + "\"";
    for (Lines& file : files) {
      file.content += file.format == DataFormat::kCsv ? quoted + "," + x + "," + k
                      : file.format == DataFormat::kJsonl
                          ? R"({"w": ")" + w + R"(", "x": )" + x + R"(, "k": )" + k + "}"
                          : k + " 1:" + x + " # " + w;
      if (i + 1 < kRecords) file.content += file.line_end;
    }
  }
  for (const Lines& file : files) {
    SCOPED_TRACE(testing::PrintToString(file.content.substr(0, 30)));
    folder_.write("lines", file.content);
    Source source = input::source(file.format, folder_, "lines");
    source.columns = {column_of("x", ColumnKind::kNumeric), column_of("k", ColumnKind::kLabel)};
    source.columns[0].from = file.number;
    source.columns[1].from = file.label;
    source.columns[1].vocabulary = {"0", "1", "2"};
    source.memory = 1;
    const auto dataset = load(source);
    ASSERT_NE(dataset, nullptr);
    ASSERT_EQ(dataset->records(), kRecords);
    EXPECT_EQ(gather_error(*dataset, all_of(kRecords)), "");
    for (std::uint64_t record = 0; record < kRecords; ++record) ASSERT_EQ(gather_error(*dataset, {record}), "");
    const std::uint64_t first = swap_lines("lines") - file.headers;
    const auto wrong = [](std::uint64_t record) {
      return AllOf(HasSubstr("lines\", record " + std::to_string(record) + ": isn't where the index has it"),
                   HasSubstr("remove the index (.disttrain-*.index)"));
    };
    for (const std::uint64_t record : {first, first + 1}) EXPECT_THAT(gather_error(*dataset, {record}), wrong(record));
    EXPECT_THAT(gather_error(*dataset, all_of(kRecords)), wrong(first));
    for (const std::uint64_t record : {first - 1, first + 2, kRecords - 1})
      EXPECT_EQ(gather_error(*dataset, {record}), "") << "this line wasn't moved";
  }
}

// Also if each record begins and ends at a line.
TEST_F(Streamed, LineMoreThanTheIndexHasIsAnError) {
  write_files(1, 100);
  const auto dataset = load(source_of(1));
  const std::filesystem::path path = folder_ / "part-0.csv";
  const auto time = std::filesystem::last_write_time(path);
  std::string text = read_whole(path);
  text[text.find("\n51,www,") + 5] = '\n';
  folder_.write("part-0.csv", text);
  std::filesystem::last_write_time(path, time);
  for (const std::vector<std::uint64_t>& records : {std::vector<std::uint64_t>{51}, {0, 1, 50, 51, 52}, all_of(100)})
    EXPECT_THAT(gather_error(*dataset, records), HasSubstr("part-0.csv\", record 51: isn't where the index has it"));
  EXPECT_EQ(gather_error(*dataset, {50, 52}), "");
}

TEST_F(Streamed, FileThatChangesWhileItIsUsedIsAnError) {
  write_files(2, 100);
  const auto dataset = load(source_of(1));
  EXPECT_EQ(gather_error(*dataset, {0, 100}), "");
  folder_.write("part-1.csv", "x,w,k\n1,w,2\n");
  EXPECT_EQ(gather_error(*dataset, {0}), "");
  EXPECT_THAT(gather_error(*dataset, {100}),
              testing::AllOf(HasSubstr("part-1.csv: was changed"), HasSubstr("expected")));
  std::filesystem::remove(folder_ / "part-0.csv");
  const auto fresh = load_dataset(source_of(1));
  ASSERT_TRUE(fresh);
  EXPECT_EQ((*fresh)->records(), 1U);
}

TEST_F(Streamed, CompressedFileThatChangesWhileItIsUsedIsAnError) {
  write_files(40, 300, true);
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) bytes += entry.file_size();
  Source source = source_of(4 * bytes - 1, ShuffleKind::kBlocks);
  source.shuffle_window = 1;
  const auto dataset = load(source);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(gather_error(*dataset, {0}), "");
  // The new file has as many records, but other values. In sorted order part-10 follows part-1.
  std::string text = "x,w,k\n";
  for (int i = 0; i < 300; ++i) text += "7,w,1\n";
  folder_.write("part-1.csv.gz", gzip(text));
  EXPECT_THAT(gather_error(*dataset, {300}), HasSubstr("part-1.csv.gz: was changed while the job uses it"));
  folder_.write("part-10.csv.gz", read_whole(folder_ / "part-10.csv.gz").substr(0, 50));
  EXPECT_THAT(gather_error(*dataset, {600}), HasSubstr("part-10.csv.gz: was changed while the job uses it"));
  std::filesystem::remove(folder_ / "part-11.csv.gz");
  EXPECT_THAT(gather_error(*dataset, {900}), HasSubstr("part-11.csv.gz: can't be read: No such file"));
}

}  // namespace
}  // namespace disttrain::input
