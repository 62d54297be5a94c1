// Data sets of many files. What a loader holds of a file, such as memory or an open descriptor, must not grow with the
// number of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "input/find_files.h"
#include "input/read_parallel.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Lets this process open few files, as a service with a low LimitNOFILE.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 100 + 128;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

class ManyFiles : public testing::Test {
 protected:
  // Writes one file, and links to it, which is faster than to write each of them.
  void write_files(int files, const std::string& content, const std::string& end) const {
    constexpr int kLinks = 30'000;  // of a file; ext4 allows 65,000
    std::string first;
    for (int i = 0; i < files; ++i) {
      const std::string name = "part-" + std::to_string(i) + end;
      if (i % kLinks == 0)
        first = folder_.write(name, content);
      else
        ASSERT_EQ(::link(first.c_str(), (folder_ / name).c_str()), 0);
    }
  }

  Source source_of(DataFormat format, const std::string& number, const std::string& label) const {
    Source source = input::source(format, folder_, "part-*");
    source.memory = 1;
    source.columns.resize(2);
    source.columns[0].name = number;
    source.columns[1].name = label;
    source.columns[1].kind = ColumnKind::kLabel;
    return source;
  }

  static std::uint64_t most_memory() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  }

  Folder folder_;
};

TEST_F(ManyFiles, HundredThousandFilesNeedFewDescriptors) {
  constexpr int kFiles = 100'000;
  write_files(kFiles, "a,k\n1,0\n2,1\n", ".csv");
  const FewDescriptors few;
  const auto dataset = load(source_of(DataFormat::kCsv, "a", "k"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->records(), 2u * kFiles);
  // One record of each of some hundred files.
  std::vector<std::uint64_t> indices;
  for (std::uint64_t i = 0; i < dataset->records(); i += 401) indices.push_back(i);
  const std::vector<float> values = gather<float>(*dataset, indices, 0, DType::kFloat32, 1);
  for (std::size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(values[i], static_cast<float>(1 + indices[i] % 2));
}

TEST_F(ManyFiles, GroupHasFewResultsInTheOrderOfTheFiles) {
  std::vector<std::string> paths;
  for (int i = 0; i < 100; ++i) paths.push_back(std::to_string(i));
  for (const std::size_t most : {std::size_t{1}, kMaxReaderThreads, paths.size() + 1}) {
    std::mutex mutex;
    std::size_t held = 0;
    std::size_t most_held = 0;
    std::vector<std::string> used;
    const auto read = [&](const std::string& path) -> Result<std::string> {
      const std::lock_guard lock(mutex);
      most_held = std::max(most_held, ++held);
      return path;
    };
    const auto use = [&](std::string&& path) -> Status {
      used.push_back(std::move(path));
      --held;
      return {};
    };
    EXPECT_TRUE(read_in_groups<std::string>(paths, most, read, use));
    EXPECT_EQ(used, paths);
    EXPECT_EQ(most_held, std::min(most, paths.size()));
  }
}

TEST_F(ManyFiles, PlacesOfManyRecordsNeedFewDescriptors) {
  constexpr int kFiles = 300;
  constexpr int kRecords = 20'000;
  std::string content;
  for (int i = 0; i < kRecords; ++i) content += "0 1:2\n";
  write_files(kFiles, content, ".svm");
  const FewDescriptors few;
  Source source = source_of(DataFormat::kLibsvm, "features", "label");
  source.columns[1].vocabulary = {"0"};
  const auto dataset = load(source);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->records(), std::uint64_t{kFiles} * kRecords);
}

TEST_F(ManyFiles, SmallTextsTakeTheMemoryOfTheirBytes) {
  constexpr int kFiles = 1000;
  write_files(kFiles, std::string(1000, 'a'), ".txt");
  write_files(kFiles, gzip(std::string(1000, 'b')), ".packed");
  const std::uint64_t before = most_memory();
  const auto dataset = load(source(DataFormat::kText, folder_, "part-*"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->records(), 2 * kFiles * ((1000 - 65) / 64 + 1));
  EXPECT_LT(most_memory() - before, std::uint64_t{512} << 20);
}

TEST_F(ManyFiles, FirstBadOneIsNamedAndTheOthersAreCounted) {
  write_files(2000, "a,k\n1,0\n2,many\n", ".csv");
  Source source = source_of(DataFormat::kCsv, "a", "k");
  source.memory = 1 << 30;
  source.columns[1].vocabulary = {"0", "1"};
  const auto dataset = load_dataset(source);
  ASSERT_FALSE(dataset);
  EXPECT_THAT(dataset.error().message,
              AllOf(HasSubstr("part-0.csv:3: the label 'many'"), HasSubstr("; 1999 more files can't be read")));
  EXPECT_LT(dataset.error().message.size(), 1000u);
}

TEST_F(ManyFiles, PatternThatComesToTheSameFoldersAgainAndAgainIsRefused) {
  for (int i = 0; i < 20; ++i) folder_.write("d" + std::to_string(i) + "/x.csv", "1,0\n");
  const Source source = input::source(DataFormat::kCsv, folder_, "*");
  constexpr std::uint64_t kNames = 1000;
  const auto few = find_files(source, "*/../d1*/x.csv", "data.files", kNames);
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_EQ(few->size(), 20u * 11u);
  const auto many = find_files(source, "*/../*/../*/../*/../*/../*/../*/../*", "data.files", kNames);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, ErrorCode::kConfig);
  EXPECT_THAT(many.error().message,
              AllOf(HasSubstr(folder_.path()), HasSubstr("data.files = \"*/../*"), HasSubstr("at most 1000 names")));
}

TEST_F(ManyFiles, SearchForFilesEndsWhenItIsCancelled) {
  for (int i = 0; i < 20; ++i) folder_.write("d" + std::to_string(i) + "/x.csv", "1,0\n");
  Source source = input::source(DataFormat::kCsv, folder_, "*");
  int asked = 0;
  source.is_cancelled = [&asked] { return ++asked == 5; };
  // Without an end it would find 20^10 paths.
  const auto found = find_files(source, "*/../*/../*/../*/../*/../*/../*/../*/../*/../*", "data.files");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kTemporary);
  EXPECT_EQ(asked, 5);
}

TEST_F(ManyFiles, FilesThatArePlainAndCompressedAreRefused) {
  folder_.write("part-0.csv", "a,k\n1,0\n");
  folder_.write("part-0.csv.zst", "");
  expect_error(source_of(DataFormat::kCsv, "a", "k"), ErrorCode::kConfig, {"part-0.csv.zst", "would count twice"});
}

}  // namespace
}  // namespace disttrain::input
