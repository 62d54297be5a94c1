// Data sets of Parquet files, whose row groups are blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "input/columns.h"
#include "input/data_figures.h"
#include "input/parquet/parquet_file.h"
#include "input/parquet/parquet_functions.h"
#include "input/parquet/parquet_writer.h"
#include "tests/input/input_files.h"
#include "tests/input/parquet_files.h"

namespace disttrain::input {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ColumnSection section_of(const std::string& name, ColumnKind kind) {
  ColumnSection column;
  column.name = name;
  column.kind = kind;
  return column;
}

std::vector<std::uint64_t> first_records(std::uint64_t records) {
  std::vector<std::uint64_t> indices(records);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

class ParquetStreamed : public testing::Test {
 protected:
  // Files of the columns x (a float), y (an integer), w (a word), v (a list of two) and k (a label). Every file has
  // another order of the columns. A csv file has the same records, without v.
  void write_files(int files, int records, int group_records) {
    std::string text = "x,y,w,k\n";
    int number = 0;
    for (int file = 0; file < files; ++file) {
      std::vector<std::optional<float>> x;
      std::vector<std::optional<std::int64_t>> y;
      std::vector<std::optional<std::string>> w;
      std::vector<std::optional<std::int32_t>> k;
      for (int i = 0; i < records; ++i, ++number) {
        if (number % 5 == 3)
          x.push_back(std::nullopt);
        else
          x.push_back(static_cast<float>(number) / 4);
        y.push_back(number * 3);
        w.push_back(std::string(static_cast<std::size_t>(1 + number % 7), 'w'));
        k.push_back(number % 3);
        text += (x.back() ? std::to_string(*x.back()) : "") + "," + std::to_string(*y.back()) + "," + *w.back() + "," +
                std::to_string(*k.back()) + "\n";
      }
      std::vector<ParquetColumn> columns = {
          parquet_column<arrow::FloatBuilder>("x", x), parquet_column<arrow::Int64Builder>("y", y),
          parquet_column<arrow::StringBuilder>("w", w), parquet_column<arrow::Int32Builder>("k", k)};
      std::rotate(columns.begin(), columns.begin() + file % 4, columns.end());
      write_parquet(folder_ / ("part-" + std::to_string(file) + ".parquet"), columns, group_records);
    }
    folder_.write("same.csv", text);
  }

  Source source_of(ShuffleKind shuffle, std::uint64_t memory = 1 << 30) const {
    Source source = input::source(DataFormat::kParquet, folder_, "*.parquet");
    source.parquet = &parquet_functions();
    source.columns = {section_of("x", ColumnKind::kNumeric), section_of("y", ColumnKind::kNumeric),
                      section_of("w", ColumnKind::kCategory), section_of("k", ColumnKind::kLabel)};
    source.columns[0].missing = -1.0;
    source.columns[1].normalise = Normalise::kStandard;
    source.memory = memory;
    source.shuffle = shuffle;
    source.shuffle_window = 1;
    return source;
  }

  // The same records, in memory.
  std::unique_ptr<Dataset> load_csv() const {
    Source source = source_of(ShuffleKind::kEpoch);
    source.format = DataFormat::kCsv;
    source.files = "same.csv";
    std::unique_ptr<Dataset> dataset = input::load(source);
    EXPECT_EQ(dataset->figures(), nullptr);
    return dataset;
  }

  static void expect_equal(const Dataset& a, const Dataset& b, const std::vector<std::uint64_t>& indices) {
    ASSERT_EQ(a.records(), b.records());
    ASSERT_EQ(a.columns().size(), b.columns().size());
    EXPECT_EQ(gather<float>(a, indices, 0, DType::kFloat32, 2), gather<float>(b, indices, 0, DType::kFloat32, 2));
    EXPECT_EQ(gather<std::int32_t>(a, indices, 1, DType::kInt32, 1),
              gather<std::int32_t>(b, indices, 1, DType::kInt32, 1));
    EXPECT_EQ(gather<std::int64_t>(a, indices, 2, DType::kInt64, 1),
              gather<std::int64_t>(b, indices, 2, DType::kInt64, 1));
    EXPECT_EQ(gather<float>(a, indices, 2, DType::kFloat32, 3), gather<float>(b, indices, 2, DType::kFloat32, 3));
  }

  static std::string gather_error(const Dataset& dataset, std::uint64_t index) {
    std::vector<float> x(2);
    const std::vector<std::uint64_t> indices = {index};
    const std::vector<ColumnOut> outs = {
        {{.name = "x", .dtype = DType::kFloat32, .shape = {2}}, std::as_writable_bytes(std::span(x)), {}}};
    const Status gathered = dataset.gather(indices, outs, {});
    return gathered ? "" : gathered.error().message;
  }

  // One file with a float that isn't finite in record 7, and labels, both in row groups of four records.
  void write_infinite() {
    std::vector<std::optional<float>> x(10, 1.0F);
    x[2] = std::nullopt;
    x[7] = std::numeric_limits<float>::infinity();
    const std::vector<std::optional<std::int32_t>> k(10, 1);
    write_parquet(folder_ / "a.parquet",
                  {parquet_column<arrow::FloatBuilder>("x", x), parquet_column<arrow::Int32Builder>("k", k)}, 4);
  }
  Source infinite_source(ShuffleKind shuffle) const {
    Source source = source_of(shuffle);
    source.columns = {section_of("x", ColumnKind::kNumeric), section_of("k", ColumnKind::kLabel)};
    source.columns[0].missing = 0.0;
    source.columns[1].vocabulary = {"1"};
    return source;
  }

  Folder folder_;
};

TEST_F(ParquetStreamed, RecordsAreThoseOfTheSameSetInMemory) {
  write_files(3, 500, 120);
  const auto memory = load_csv();
  for (const ShuffleKind shuffle : {ShuffleKind::kEpoch, ShuffleKind::kBlocks, ShuffleKind::kNone}) {
    const auto dataset = load(source_of(shuffle));
    expect_equal(*memory, *dataset, first_records(1500));
    expect_equal(*memory, *dataset, {1499, 0, 119, 120, 121, 7, 7, 499, 500, 1000});
  }
}

TEST_F(ParquetStreamed, RowGroupsAreBlocks) {
  write_files(2, 300, 120);
  const auto dataset = load(source_of(ShuffleKind::kBlocks));
  EXPECT_THAT(dataset->blocks(), ElementsAre(0, 120, 240, 300, 420, 540));
  ASSERT_NE(dataset->figures(), nullptr);
  const std::uint64_t bytes = dataset->bytes_read();
  EXPECT_EQ(gather_error(*dataset, 130), "");
  EXPECT_GT(dataset->bytes_read(), bytes);
  EXPECT_GT(dataset->figures()->read_ns, 0U);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".disttrain-")) << "an index";
}

TEST_F(ParquetStreamed, RecordsOfARangeAreThoseOfTheSameSetInMemory) {
  write_files(3, 500, 120);
  for (const ShuffleKind shuffle : {ShuffleKind::kEpoch, ShuffleKind::kBlocks}) {
    Source part = source_of(shuffle);
    part.begin = 490;
    part.end = 1203;
    const auto dataset = load(part);
    EXPECT_EQ(dataset->blocks().size(), 8U);
    EXPECT_EQ(dataset->blocks()[1], 500U - 490U);
    part.format = DataFormat::kCsv;
    part.files = "same.csv";
    part.shuffle = ShuffleKind::kEpoch;
    expect_equal(*load(part), *dataset, first_records(713));
  }
}

TEST_F(ParquetStreamed, LengthsOfARangeAreThoseOfItsRecords) {
  write_files(3, 500, 120);
  Source source = source_of(ShuffleKind::kBlocks);
  ColumnSection word = section_of("word", ColumnKind::kBytes);
  word.from = "w";
  word.length = 9;
  source.columns.push_back(word);
  source.bucket_by = "word";
  source.begin = 230;
  source.end = 1203;
  const auto dataset = load(source);
  ASSERT_NE(dataset, nullptr);
  ASSERT_EQ(dataset->lengths().size(), 1203U - 230U);
  for (std::uint64_t i = 0; i < dataset->records(); ++i) EXPECT_EQ(dataset->lengths()[i], 1 + (230 + i) % 7) << i;
}

// A record takes 20 bytes: two inputs, a category and a label.
TEST_F(ParquetStreamed, SetsLargerThanMemoryNeedBlocks) {
  write_files(4, 400, 100);
  const auto memory = load_csv();
  const std::uint64_t two_blocks = 2 * 100 * 20;
  expect_error(
      source_of(ShuffleKind::kEpoch, 1600 * 20 - 1), ErrorCode::kConfig,
      {"the records of parquet files can't be read one by one: set data.shuffle = \"blocks\"", "or raise data.memory"});
  EXPECT_NE(load(source_of(ShuffleKind::kEpoch, 1600 * 20)), nullptr);
  const auto blocks = load(source_of(ShuffleKind::kBlocks, two_blocks));
  const auto in_order = load(source_of(ShuffleKind::kNone, two_blocks));
  expect_equal(*memory, *blocks, first_records(1600));
  expect_equal(*memory, *in_order, first_records(1600));
  expect_equal(*memory, *in_order, {1599, 0, 1599, 1});
  expect_error(
      source_of(ShuffleKind::kNone, two_blocks - 1), ErrorCode::kConfig,
      {"the records of 2 blocks take up to 4 KiB, but data may use 3 KiB of memory: raise data.memory, or write the "
       "files with smaller row groups"});
  Source wide = source_of(ShuffleKind::kBlocks, two_blocks);
  wide.shuffle_window = 2;
  expect_error(wide, ErrorCode::kConfig, {"lower data.shuffle_window, or write the files with smaller row groups"});
}

// Two windows of a set with fewer blocks are the whole set.
TEST_F(ParquetStreamed, MemoryForTheWholeSetIsEnoughForAnyWindow) {
  write_files(1, 400, 100);
  Source source = source_of(ShuffleKind::kBlocks, 400 * 20);
  source.shuffle_window = 16;
  expect_equal(*load_csv(), *load(source), first_records(400));
}

// Several threads read the columns of such a row group.
TEST_F(ParquetStreamed, OneLargeRowGroupIsReadAsSeveralSmallOnes) {
  write_files(1, 120'000, 120'000);
  const auto dataset = load(source_of(ShuffleKind::kEpoch));
  EXPECT_EQ(dataset->blocks().size(), 1U);
  expect_equal(*load_csv(), *dataset, first_records(120'000));
}

TEST_F(ParquetStreamed, SeveralThreadsGetTheSameBlocks) {
  write_files(4, 1000, 100);
  const auto memory = load_csv();
  const auto dataset = load(source_of(ShuffleKind::kBlocks, 3 * 100 * 20));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint64_t first = 0; first < 4000; first += 50) {
        std::vector<std::uint64_t> indices;
        for (std::uint64_t i = 0; i < 50; ++i) indices.push_back((first * (thread % 2 == 0 ? 1 : 7) + i * 3) % 4000);
        expect_equal(*memory, *dataset, indices);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ParquetStreamed, ColumnsWithoutNullsAndOfOtherTypesGiveTheSameRecords) {
  std::vector<std::optional<double>> x;
  std::vector<std::optional<std::int16_t>> y;
  std::vector<std::optional<std::uint32_t>> k;
  for (int i = 0; i < 50; ++i) {
    x.push_back(i / 2.0);
    y.push_back(static_cast<std::int16_t>(-i));
    k.push_back(i % 3);
  }
  const std::vector<ParquetColumn> columns = {parquet_column<arrow::DoubleBuilder>("x", x),
                                              parquet_column<arrow::Int16Builder>("y", y),
                                              parquet_column<arrow::UInt32Builder>("k", k)};
  for (const bool is_nullable : {false, true}) {
    write_parquet(folder_ / "a.parquet", columns, 20, is_nullable);
    Source source = source_of(ShuffleKind::kNone);
    source.columns = {section_of("x", ColumnKind::kNumeric), section_of("y", ColumnKind::kNumeric),
                      section_of("k", ColumnKind::kLabel)};
    const auto dataset = load(source);
    EXPECT_EQ(gather<float>(*dataset, {0, 19, 20, 49}, 0, DType::kFloat32, 2),
              (std::vector<float>{0, 0, 9.5F, -19, 10, -20, 24.5F, -49}));
    EXPECT_EQ(gather<std::int64_t>(*dataset, {0, 19, 20, 49}, 1, DType::kInt64, 1),
              (std::vector<std::int64_t>{0, 1, 2, 1}));
  }
}

TEST_F(ParquetStreamed, WrongValueIsAnErrorWithFileRecordAndColumn) {
  write_infinite();
  const auto expected = AllOf(HasSubstr("a.parquet\", record 7: infinity in column 'x'"), HasSubstr("finite number"));
  const auto in_memory = load_dataset(infinite_source(ShuffleKind::kEpoch));
  ASSERT_FALSE(in_memory);
  EXPECT_EQ(in_memory.error().code, ErrorCode::kData);
  EXPECT_THAT(in_memory.error().message, expected);
  const auto dataset = load(infinite_source(ShuffleKind::kNone));
  std::vector<float> x(1);
  const std::vector<ColumnOut> outs = {
      {{.name = "x", .dtype = DType::kFloat32, .shape = {}}, std::as_writable_bytes(std::span(x)), {}}};
  EXPECT_TRUE(dataset->gather(std::vector<std::uint64_t>{9}, outs, {}));
  const Status gathered = dataset->gather(std::vector<std::uint64_t>{5}, outs, {});
  ASSERT_FALSE(gathered);
  EXPECT_THAT(gathered.error().message, expected);
}

TEST_F(ParquetStreamed, NullWithoutMissingIsAnErrorThatNamesTheRecord) {
  write_infinite();
  Source source = infinite_source(ShuffleKind::kEpoch);
  source.columns[0].missing.reset();
  source.end = 4;
  expect_error(source, ErrorCode::kData, {"a.parquet\", record 2: no value in column 'x'"});
}

TEST_F(ParquetStreamed, FileThatChangesWhileItIsUsedIsAnError) {
  write_files(2, 200, 100);
  const auto dataset = load(source_of(ShuffleKind::kBlocks));
  EXPECT_EQ(gather_error(*dataset, 0), "");
  const std::string other = read_whole(folder_ / "part-0.parquet");
  folder_.write("part-1.parquet", other + "x");
  EXPECT_EQ(gather_error(*dataset, 1), "");
  EXPECT_THAT(gather_error(*dataset, 200), HasSubstr("part-1.parquet"));
  folder_.write("part-1.parquet", other);
  EXPECT_THAT(gather_error(*dataset, 200), HasSubstr("part-1.parquet: was changed while the job uses it"));
  std::filesystem::remove(folder_ / "part-1.parquet");
  EXPECT_THAT(gather_error(*dataset, 300), HasSubstr("part-1.parquet"));
}

TEST_F(ParquetStreamed, TruncatedAndDamagedFilesAreErrors) {
  write_files(1, 300, 100);
  const std::string whole = read_whole(folder_ / "part-0.parquet");
  Source source = source_of(ShuffleKind::kEpoch);
  source.columns[1].normalise = Normalise::kNone;
  source.columns[2].vocabulary = {"w", "ww"};
  source.columns[3].vocabulary = {"0", "1", "2"};
  ASSERT_NE(load(source), nullptr);
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 211) {
    folder_.write("part-0.parquet", whole.substr(0, bytes));
    EXPECT_FALSE(load_dataset(source)) << bytes;
  }
  int errors = 0;
  for (std::size_t at = 4; at < whole.size(); at += 29) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    folder_.write("part-0.parquet", damaged);
    const auto dataset = load_dataset(source);
    errors += dataset ? 0 : 1;
    EXPECT_THAT(dataset ? "part-0.parquet" : dataset.error().message, HasSubstr("part-0.parquet"));
  }
  EXPECT_GT(errors, 0);
}

TEST_F(ParquetStreamed, FileWithoutRecordsIsRefused) {
  write_files(1, 10, 10);
  write_parquet(folder_ / "z.parquet",
                {parquet_column<arrow::FloatBuilder>("x", std::vector<std::optional<float>>{}),
                 parquet_column<arrow::Int64Builder>("y", std::vector<std::optional<std::int64_t>>{}),
                 parquet_column<arrow::StringBuilder>("w", std::vector<std::optional<std::string>>{}),
                 parquet_column<arrow::Int32Builder>("k", std::vector<std::optional<std::int32_t>>{})},
                10);
  expect_error(source_of(ShuffleKind::kNone), ErrorCode::kData, {"z.parquet: has no records"});
}

TEST_F(ParquetStreamed, OtherFilesHaveAnotherHash) {
  write_files(1, 100, 50);
  const std::uint64_t hash = load(source_of(ShuffleKind::kBlocks))->hash();
  EXPECT_EQ(load(source_of(ShuffleKind::kBlocks))->hash(), hash);
  write_files(1, 100, 20);
  EXPECT_NE(load(source_of(ShuffleKind::kBlocks))->hash(), hash);
}

TEST_F(ParquetStreamed, ImagesAreRefused) {
  write_files(1, 10, 10);
  Source source = source_of(ShuffleKind::kNone);
  source.columns = {section_of("w", ColumnKind::kImage), section_of("k", ColumnKind::kLabel)};
  source.columns[0].shape = {3, 8, 8};
  expect_error(source, ErrorCode::kConfig, {"images must be read one by one"});
}

TEST_F(ParquetStreamed, CancelledLoadIsTemporary) {
  write_files(2, 100, 50);
  Source source = source_of(ShuffleKind::kEpoch);
  int calls = 0;
  source.columns[1].normalise = Normalise::kNone;
  source.columns[2].vocabulary = {"w"};
  source.columns[3].vocabulary = {"0", "1", "2"};
  source.is_cancelled = [&calls] { return ++calls > 3; };
  const auto loaded = load_dataset(source);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kTemporary);
}

TEST_F(ParquetStreamed, WriterWritesWhatTheReaderReads) {
  constexpr std::size_t kRows = 2'000'000;  // several row groups
  std::vector<float> rows(3 * kRows);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i) / 8;
  const std::string path = folder_ / "out.parquet";
  const auto writer = ParquetWriter::create(path, {"a", "b", "c"});
  ASSERT_TRUE(writer);
  for (std::size_t at = 0; at < rows.size(); at += 300'000)
    ASSERT_TRUE((*writer)->add(std::span(rows).subspan(at, std::min<std::size_t>(300'000, rows.size() - at))));
  ASSERT_TRUE((*writer)->finish());
  const auto file = ParquetFile::open(path, {{"c", ValueKind::kFloat}, {"a", ValueKind::kFloat}});
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_GT((*file)->groups().size(), 1U);
  std::size_t row = 0;
  for (std::size_t group = 0; group < (*file)->groups().size(); ++group) {
    ASSERT_TRUE((*file)->start(group));
    Table table;
    while (*(*file)->next(table))
      for (std::size_t i = 0; i < table.records; ++i, ++row) {
        ASSERT_EQ(table.columns[0].floats[i], rows[3 * row + 2]);
        ASSERT_EQ(table.columns[1].floats[i], rows[3 * row]);
      }
  }
  EXPECT_EQ(row, kRows);
  EXPECT_EQ(ParquetWriter::create(folder_ / "no/out.parquet", {"a"}).error().code, ErrorCode::kFailed);
}

}  // namespace
}  // namespace disttrain::input
