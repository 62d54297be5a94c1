// A process that was killed leaves its run folder. The next one removes it, and no other folder.
#include "tools/disttrain/up/run_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace disttrain::cli {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() : base_(fs::temp_directory_path() / ("run_folder_test." + std::to_string(::getpid()))) {
    fs::create_directories(base_);
    ::setenv("TMPDIR", base_.c_str(), 1);
  }
  ~RunFolderTest() override {
    ::unsetenv("TMPDIR");
    fs::remove_all(base_);
  }

  // Another process makes a run folder, and is killed. Returns the folder.
  fs::path killed() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto folder = RunFolder::make();
      const std::string path = folder ? folder->path().string() : "";
      if (::write(ends[1], path.data(), path.size()) > 0) ::raise(SIGKILL);
      ::_exit(1);
    }
    ::close(ends[1]);
    std::array<char, 4096> path{};
    const auto bytes = ::read(ends[0], path.data(), path.size());
    ::close(ends[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    return std::string(path.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  }

  const fs::path base_;
};

TEST_F(RunFolderTest, OfAKilledProcessIsRemovedByTheNext) {
  const fs::path left = killed();
  ASSERT_TRUE(fs::exists(left / "lock"));
  std::ofstream(left / "worker-0.log") << "a line";
  const auto next = RunFolder::make();
  ASSERT_TRUE(next);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(next->path()));
}

TEST_F(RunFolderTest, OfALivingOwnerStays) {
  const auto first = RunFolder::make();
  const auto second = RunFolder::make();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(fs::exists(first->path()));
}

TEST_F(RunFolderTest, ThatIsKeptStays) {
  fs::path kept;
  {
    auto folder = RunFolder::make();
    ASSERT_TRUE(folder);
    kept = folder->path();
    folder->keep();
  }
  ASSERT_TRUE(RunFolder::make());
  EXPECT_TRUE(fs::exists(kept));
}

TEST_F(RunFolderTest, IsRemovedByItsOwner) {
  fs::path path;
  {
    const auto folder = RunFolder::make();
    ASSERT_TRUE(folder);
    path = folder->path();
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RunFolderTest, OtherFoldersStay) {
  for (const char* name : {"disttrain-test-1", "disttrain-abc", "mine", "disttrain-a.b.c.", "disttrain-AbCdEf"})
    fs::create_directories(base_ / name);
  std::ofstream(base_ / "mine" / "lock");
  std::ofstream(base_ / "disttrain-test-1" / "lock");
  fs::create_directory_symlink(base_ / "mine", base_ / "disttrain-123456");
  std::ofstream(base_ / "disttrain-654321") << "a file";
  fs::create_directories(base_ / "disttrain-shared");
  fs::create_directories(base_ / "disttrain-Others");
  std::ofstream(base_ / "disttrain-Others" / "lock");
  fs::permissions(base_ / "disttrain-Others", fs::perms(0777));
  const auto count = [this] { return std::distance(fs::directory_iterator(base_), fs::directory_iterator()); };
  const auto before = count();
  ASSERT_TRUE(RunFolder::make());
  EXPECT_EQ(count(), before);
  EXPECT_TRUE(fs::exists(base_ / "mine" / "lock"));
}

}  // namespace
}  // namespace disttrain::cli
