// The index of a data set that is read for each batch: when it is built, found, and built again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "input/record_index.h"
#include "tests/input/streamed_fixture.h"

namespace disttrain::input {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

}  // namespace
}  // namespace disttrain::input
