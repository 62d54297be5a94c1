// Data sets that are read from their files for each batch, and their indexes.
#include "workerd/input/streamed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

#include "tests/workerd/input/input_files.h"
#include "workerd/input/data_figures.h"
#include "workerd/input/record_index.h"

namespace disttrain::input {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ColumnSection column_of(const std::string& name, ColumnKind kind) {
  ColumnSection column;
  column.name = name;
  column.kind = kind;
  return column;
}

class Streamed : public testing::Test {
 protected:
  // Files of `records` lines each: x, w and k, with words of different lengths.
  void write_files(int files, int records, bool gz = false) {
    int number = 0;
    for (int file = 0; file < files; ++file) {
      std::string text = "x,w,k\n";
      for (int i = 0; i < records; ++i, ++number)
        text +=
            std::to_string(number) + "," + std::string(1 + number % 7, 'w') + "," + std::to_string(number % 3) + "\n";
      const std::string name = "part-" + std::to_string(file) + ".csv";
      folder_.write(gz ? name + ".gz" : name, gz ? gzip(text) : text);
    }
  }

  // If `memory` is 1, the records are read for each batch.
  Source source_of(std::uint64_t memory, ShuffleKind shuffle = ShuffleKind::kEpoch) const {
    Source source = input::source(DataFormat::kCsv, folder_, "part-*");
    source.columns = {column_of("x", ColumnKind::kNumeric), column_of("w", ColumnKind::kCategory),
                      column_of("k", ColumnKind::kLabel)};
    source.columns[0].normalise = Normalise::kStandard;
    source.memory = memory;
    source.shuffle = shuffle;
    return source;
  }

  std::unique_ptr<Dataset> load(const Source& source) {
    Result<std::unique_ptr<Dataset>> dataset = load_dataset(source);
    EXPECT_TRUE(dataset) << dataset.error().message;
    return dataset ? std::move(*dataset) : nullptr;
  }

  std::string error_of(const Source& source, ErrorCode code) {
    const auto dataset = load_dataset(source);
    EXPECT_FALSE(dataset);
    if (dataset) return "";
    EXPECT_EQ(dataset.error().code, code);
    return dataset.error().message;
  }

  // The error of reading some records of a data set that was opened without one.
  static std::string gather_error(const Dataset& dataset, const std::vector<std::uint64_t>& indices) {
    std::vector<float> x(indices.size());
    const std::vector<ColumnOut> outs = {
        {{.name = "x", .dtype = DType::kFloat32, .shape = {}}, std::as_writable_bytes(std::span(x)), {}}};
    const Status gathered = dataset.gather(indices, outs, {});
    return gathered ? "" : gathered.error().message;
  }

  static void expect_equal(const Dataset& a, const Dataset& b, const std::vector<std::uint64_t>& indices) {
    ASSERT_EQ(a.records(), b.records());
    ASSERT_EQ(a.columns().size(), b.columns().size());
    EXPECT_EQ(gather<float>(a, indices, 0, DType::kFloat32, 1), gather<float>(b, indices, 0, DType::kFloat32, 1));
    EXPECT_EQ(gather<std::int32_t>(a, indices, 1, DType::kInt32, 1),
              gather<std::int32_t>(b, indices, 1, DType::kInt32, 1));
    EXPECT_EQ(gather<std::int64_t>(a, indices, 2, DType::kInt64, 1),
              gather<std::int64_t>(b, indices, 2, DType::kInt64, 1));
    EXPECT_EQ(gather<float>(a, indices, 2, DType::kFloat32, 3), gather<float>(b, indices, 2, DType::kFloat32, 3));
  }

  // Swaps two lines of different lengths near a quarter of the file, whose size and time of modification stay the same,
  // as after `touch -r`. Returns the number of lines before them.
  std::uint64_t swap_lines(const std::string& name) const {
    const std::filesystem::path path = folder_ / name;
    const auto time = std::filesystem::last_write_time(path);
    std::string text = read_whole(path);
    const std::size_t first = text.find('\n', text.size() / 4) + 1;
    const std::size_t second = text.find('\n', first) + 1;
    const std::size_t end = text.find('\n', second) + 1;
    EXPECT_NE(second - first, end - second);
    const auto at = [&text](std::size_t byte) { return text.begin() + static_cast<std::ptrdiff_t>(byte); };
    std::rotate(at(first), at(second), at(end));
    folder_.write(name, text);
    std::filesystem::last_write_time(path, time);
    return static_cast<std::uint64_t>(std::count(text.begin(), at(first), '\n'));
  }

  std::vector<std::string> index_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().filename().string().starts_with(".disttrain-")) names.push_back(entry.path().string());
    return names;
  }

  Folder folder_;
};

std::vector<std::uint64_t> all_of(std::uint64_t records) {
  std::vector<std::uint64_t> indices(records);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

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

TEST_F(Streamed, IndexIsBuiltOnceAndThenFound) {
  write_files(2, 100);
  ASSERT_NE(load(source_of(1)), nullptr);
  const std::vector<std::string> first = index_files();
  ASSERT_EQ(first.size(), 1U);
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::stat(first[0].c_str(), &before), 0);
  const auto again = load(source_of(1));
  ASSERT_EQ(::stat(first[0].c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_LE(before.st_size, 200 * 24);
  EXPECT_EQ(again->records(), 200U);
  EXPECT_EQ(again->notice(), "");
}

TEST_F(Streamed, IndexOfOtherFilesIsNotUsed) {
  write_files(2, 100);
  const auto before = load(source_of(1));
  write_files(2, 120);
  const auto after = load(source_of(1));
  EXPECT_EQ(before->records(), 200U);
  EXPECT_EQ(after->records(), 240U);
  EXPECT_NE(before->hash(), after->hash());
  EXPECT_EQ(index_files().size(), 2U);
}

TEST_F(Streamed, DamagedIndexIsBuiltAnew) {
  write_files(1, 100);
  ASSERT_NE(load(source_of(1)), nullptr);
  const std::string path = index_files().at(0);
  const std::string good = read_whole(path);
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, good.size() - 1, good.size() + 1}) {
    std::string bad = good;
    bad.resize(size);
    folder_.write(std::filesystem::path(path).filename(), bad);
    EXPECT_EQ(load(source_of(1))->records(), 100U);
    EXPECT_EQ(read_whole(path), good);
  }
  for (const std::size_t at : {0UL, 9UL, 17UL, 25UL, 33UL, 41UL, 50UL}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    folder_.write(std::filesystem::path(path).filename(), bad);
    EXPECT_EQ(load(source_of(1))->records(), 100U);
    EXPECT_EQ(read_whole(path), good) << "byte " << at;
  }
}

// Each record would begin and end some bytes later, and csv has no sign of its own by which one would see that.
TEST_F(Streamed, IndexWhosePlacesWereShiftedIsBuiltAnew) {
  write_files(1, 100);
  const auto right = load(source_of(1 << 30));  // in memory
  const std::uint64_t hash = load(source_of(1))->hash();
  const std::string path = index_files().at(0);
  const std::string good = read_whole(path);
  std::string bad = good;
  for (std::size_t at = bad.size() - 90 * sizeof(IndexedPlace); at < bad.size(); at += sizeof(IndexedPlace)) {
    IndexedPlace place;
    std::memcpy(&place, bad.data() + at, sizeof(place));
    ++place.offset;
    --place.bytes;
    std::memcpy(bad.data() + at, &place, sizeof(place));
  }
  folder_.write(std::filesystem::path(path).filename(), bad);
  const auto again = load(source_of(1));
  EXPECT_EQ(again->hash(), hash);
  EXPECT_EQ(read_whole(path), good);
  expect_equal(*right, *again, {0, 50, 99});
}

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

TEST_F(Streamed, FilesThatDifferOnlyInTheirContentHaveAnIndexEach) {
  write_files(1, 100);
  const auto before = load(source_of(1));
  const std::string path = index_files().at(0);
  const std::filesystem::path data = folder_ / "part-0.csv";
  ASSERT_TRUE(std::filesystem::exists(data));
  const auto time = std::filesystem::last_write_time(data);
  std::string content = read_whole(data);
  const std::string end = "98,w,2\n99,ww,0\n";
  ASSERT_TRUE(content.ends_with(end));
  content.replace(content.size() - end.size(), end.size(), "98,ww,2\n99,w,0\n");  // the last line begins later
  folder_.write("part-0.csv", content);
  std::filesystem::last_write_time(data, time);
  (void)load(source_of(1));
  EXPECT_EQ(index_files().size(), 2U);
}

// The samples of a large file are its first, middle and last 4 KiB.
TEST_F(Streamed, FilesThatDifferOnlyBetweenTheirSamplesHaveAnIndexEach) {
  write_files(2, 5000);
  const auto before = load(source_of(1));
  swap_lines("part-1.csv");
  const auto after = load(source_of(1));
  EXPECT_EQ(index_files().size(), 2U);
  EXPECT_NE(before->hash(), after->hash());
  expect_equal(*load(source_of(1 << 30)), *after, all_of(10'000));
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

TEST_F(Streamed, PipeIsAnErrorAndNotAWaitForEver) {
  write_files(1, 100);
  ASSERT_NE(load(source_of(1)), nullptr);
  const std::string path = index_files().at(0);
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // one with the name of an index doesn't matter
  EXPECT_EQ(load(source_of(1))->records(), 100U);
  ASSERT_EQ(::mkfifo((folder_ / "part-1.csv").c_str(), 0600), 0);
  EXPECT_THAT(error_of(source_of(1), ErrorCode::kNoInput), AllOf(HasSubstr("part-1.csv"), HasSubstr("it is a pipe")));
}

TEST_F(Streamed, IndexMayHaveAFolderOfItsOwn) {
  write_files(1, 100);
  Source source = source_of(1);
  const Folder other;
  source.index = other.path();
  ASSERT_NE(load(source), nullptr);
  EXPECT_TRUE(index_files().empty());
  EXPECT_FALSE(std::filesystem::is_empty(other.path()));
  source.index = other / "missing";
  EXPECT_THAT(error_of(source, ErrorCode::kNoInput), HasSubstr("set data.index to a folder that workers may write"));
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

}  // namespace
}  // namespace disttrain::input
