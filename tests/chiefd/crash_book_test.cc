// The file in which the chief counts its crashes, on this machine's real disk.
#include "chiefd/crash_book.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace disttrain::chiefd {
namespace {

using Counts = std::map<JobId, std::uint32_t>;

class CrashBookTest : public testing::Test {
 protected:
  CrashBookTest() {
    std::string pattern = testing::TempDir() + "disttrain-crashes-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~CrashBookTest() override { std::filesystem::remove_all(directory_); }

  Counts counts(std::uint64_t journal) {
    const auto book = CrashBook::open(directory_, JournalId(journal));
    EXPECT_TRUE(book) << book.error().message;
    return book ? book->crashes() : Counts();
  }
  void append(const std::string& text) { std::ofstream(path(), std::ios::app) << text; }
  std::string path() const { return directory_ + "/crashes"; }

  std::string directory_;
};

TEST_F(CrashBookTest, CountsTheLinesOfEachJob) {
  EXPECT_EQ(counts(7), Counts());
  append("34\n5\n34\n");
  EXPECT_EQ(counts(7), (Counts{{JobId(5), 1}, {JobId(34), 2}}));
}

TEST_F(CrashBookTest, LinesThatAreNoNumberOrAreCutOffDontCount) {
  counts(7);
  append("34 \n-3\n\n99999999999\nx\n3");
  EXPECT_EQ(counts(7), Counts());
}

// The jobs of a new journal have the numbers of jobs of the old one.
TEST_F(CrashBookTest, BookOfAnotherJournalIsEmptied) {
  counts(7);
  append("34\n");
  EXPECT_EQ(counts(70), Counts());
  EXPECT_EQ(counts(7), Counts());
}

TEST_F(CrashBookTest, BookThatHasBecomeTooLongIsEmptied) {
  counts(7);
  for (int i = 0; i < 20'000; ++i) append("1234\n");
  EXPECT_EQ(counts(7), Counts());
  EXPECT_LT(std::filesystem::file_size(path()), 100u);
  append("34\n");
  EXPECT_EQ(counts(7), (Counts{{JobId(34), 1}}));
}

}  // namespace
}  // namespace disttrain::chiefd
