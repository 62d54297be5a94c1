// On this machine's real disk.
#include "common/checkpoint/disk_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/common/checkpoint/small_job.h"

namespace disttrain::checkpoint {
namespace {

class DiskFilesTest : public testing::Test {
 protected:
  DiskFilesTest() {
    std::string pattern = testing::TempDir() + "disttrain-checkpoint-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~DiskFilesTest() override { std::filesystem::remove_all(folder_); }

  DiskFiles files_;
  std::string folder_;
};

TEST_F(DiskFilesTest, CheckpointsAreSavedKeptAndLoaded) {
  const auto lock = lock_job_folder(files_, folder_, "job");
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_FALSE(lock_job_folder(files_, folder_, "job"));
  const std::string job = folder_ + "/job";
  const Layout layout = layout_of(small_model(), 2, 5);
  for (std::uint64_t step = 10; step <= 40; step += 10) {
    const Result<std::string> path = save(files_, job, layout, 1, step, 1, step);
    ASSERT_TRUE(path) << path.error().message;
  }
  const auto removed = retain(files_, job, Retention{2, 0, ""});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->size(), 2u);
  std::vector<std::string> broken;
  std::set<std::string> damaged;
  const auto newest = open_newest(files_, job, broken, damaged);
  ASSERT_TRUE(newest.has_value() && *newest);
  EXPECT_EQ((*newest)->manifest.step, Step(40));
  const Status loaded = load(files_, **newest, layout_of(small_model(), 3, 4));
  EXPECT_TRUE(loaded) << loaded.error().message;
}

TEST_F(DiskFilesTest, MissingDirectoryIsToldByItsKey) {
  const auto lock = lock_job_folder(files_, folder_ + "/gone", "job");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::kNoInput);
  EXPECT_TRUE(lock.error().message.starts_with("checkpoint.directory " + folder_ + "/gone doesn't exist on this host"))
      << lock.error().message;
}

TEST_F(DiskFilesTest, FileInPlaceOfAFolderIsNamed) {
  ASSERT_TRUE(write_text(files_, folder_ + "/file", ""));
  const auto in_file = lock_job_folder(files_, folder_ + "/file", "job");
  ASSERT_FALSE(in_file);
  EXPECT_EQ(in_file.error().code, ErrorCode::kConfig);
  EXPECT_EQ(in_file.error().message, "checkpoint.directory: " + folder_ +
                                         "/file is a file, but a folder is needed under this name: move it away, or "
                                         "set checkpoint.directory to a folder");
  const auto is_file = lock_job_folder(files_, folder_, "file");
  ASSERT_FALSE(is_file);
  EXPECT_EQ(is_file.error().code, ErrorCode::kConfig);
  EXPECT_NE(is_file.error().message.find("set another checkpoint.directory or job.name"), std::string::npos)
      << is_file.error().message;
}

TEST_F(DiskFilesTest, OnlyThisUserCanHoldTheLock) {
  const auto lock = lock_job_folder(files_, folder_, "job");
  ASSERT_TRUE(lock) << lock.error().message;
  const auto mode = std::filesystem::status(folder_ + "/job/.lock").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(DiskFilesTest, LockOfAnOlderVersionIsTakenFromOtherUsers) {
  std::filesystem::create_directory(folder_ + "/job");
  ASSERT_TRUE(files_.create(folder_ + "/job/.lock"));
  ASSERT_EQ(::chmod((folder_ + "/job/.lock").c_str(), 0644), 0);
  const auto lock = lock_job_folder(files_, folder_, "job");
  ASSERT_TRUE(lock) << lock.error().message;
  const auto mode = std::filesystem::status(folder_ + "/job/.lock").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

// Entries of another kind at each of our names, as a mistake or malice leaves them.
TEST_F(DiskFilesTest, EntriesOfAnotherKindAtOurNamesAreSetAside) {
  const std::string job = folder_ + "/job";
  std::filesystem::create_directories(job + "/.token/inside");
  std::filesystem::create_directory(job + "/evaluations.json");
  ASSERT_EQ(::mkfifo((job + "/.tmp-1-1").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((job + "/gen-1-step-00000000000000000005").c_str(), 0600), 0);
  ASSERT_EQ(::mknod((job + "/.lock").c_str(), S_IFSOCK | 0600, 0), 0);
  std::filesystem::create_symlink("nowhere", job + "/.token-new");
  ASSERT_EQ(::mkfifo((job + "/events").c_str(), 0600), 0);
  std::filesystem::create_directories(job + "/.tmp-old/inside");  // not a name of ours
  std::vector<std::string> said;
  const Status aside = set_strays_aside(files_, job, said, {"evaluations.json"});
  ASSERT_TRUE(aside) << aside.error().message;
  EXPECT_EQ(said.size(), 7u);
  EXPECT_EQ(said.front(),
            job + "/.lock is neither a file nor a folder; expected a file: it was renamed to .stray-lock");
  EXPECT_TRUE(std::filesystem::exists(job + "/.stray-token/inside"));
  EXPECT_EQ(list_set_aside(files_, job)->size(), 1u) << "what had a checkpoint's name counts as a damaged one";
  said.clear();
  EXPECT_TRUE(set_strays_aside(files_, job, said));
  EXPECT_TRUE(said.empty());

  const auto lock = lock_job_folder(files_, folder_, "job");
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_TRUE(write_token(files_, job, 7));
  EXPECT_TRUE(begin_attempt(files_, job, Generation(1), 1));
  EXPECT_TRUE(std::filesystem::exists(job + "/.tmp-old/inside"));
  EXPECT_TRUE(list_checkpoints(files_, job)->empty());
}

TEST_F(DiskFilesTest, TooManyStraysOfANameArentTriedAgain) {
  const std::string job = folder_ + "/job";
  std::filesystem::create_directories(job + "/.token");
  std::filesystem::create_directory(job + "/.stray-token");
  for (int number = 2; number <= 1000; ++number)
    std::filesystem::create_directory(job + "/.stray-token-" + std::to_string(number));
  std::vector<std::string> said;
  const Status aside = set_strays_aside(files_, job, said);
  ASSERT_FALSE(aside);
  EXPECT_EQ(aside.error().code, ErrorCode::kConfig);
  EXPECT_NE(aside.error().message.find("has 1000 entries .stray-token-... already: remove them"), std::string::npos)
      << aside.error().message;
}

TEST_F(DiskFilesTest, LeftoversThatNoAttemptLeavesAreSetAside) {
  const std::string job = folder_ + "/job";
  std::filesystem::create_directories(job + "/.tmp-1-2/inside");
  std::filesystem::create_directory(job + "/.tmp-1-3");
  ASSERT_EQ(::mkfifo((job + "/.tmp-1-4").c_str(), 0600), 0);
  ASSERT_TRUE(begin_attempt(files_, job, Generation(1), 5));
  std::vector<std::string> names = *files_.list(job);
  EXPECT_EQ(names, (std::vector<std::string>{".stray-tmp-1-2", ".stray-tmp-1-4", ".tmp-1-5"}));
}

// A link at the name of an attempt, or of a folder that is being removed, may lead to anybody's files.
TEST_F(DiskFilesTest, FilesBehindALinkAreNeverRemoved) {
  const std::string job = folder_ + "/job";
  std::filesystem::create_directories(folder_ + "/theirs");
  std::filesystem::create_directories(job + "/.tmp-1-2");
  const auto link = [&](const std::string& name) { std::filesystem::create_symlink("../theirs", job + "/" + name); };
  ASSERT_TRUE(write_text(files_, folder_ + "/theirs/thesis", "text"));
  link(".tmp-1-1");
  link(".del-gen-1-step-00000000000000000005");
  std::vector<std::string> said;
  const Status aside = set_strays_aside(files_, job, said);
  ASSERT_TRUE(aside) << aside.error().message;
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said.back(), job + "/.tmp-1-1 is a symbolic link; expected a folder: it was renamed to .stray-tmp-1-1");
  link(".tmp-1-1");
  link(".tmp-1-2/inside");
  ASSERT_TRUE(begin_attempt(files_, job, Generation(1), 3));
  EXPECT_EQ(*files_.list(job), (std::vector<std::string>{".stray-del-gen-1-step-00000000000000000005", ".stray-tmp-1-1",
                                                         ".stray-tmp-1-1-2", ".tmp-1-3"}));
  link("link");
  EXPECT_TRUE(remove_all(files_, job + "/link"));
  EXPECT_EQ(*files_.kind_of(job + "/link"), EntryKind::kNone);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/theirs/thesis"));
}

TEST_F(DiskFilesTest, CheckpointBehindALinkIsReadAndOnlyTheLinkRemoved) {
  const std::string job = folder_ + "/job";
  const Layout layout = layout_of(small_model(), 2, 5);
  std::filesystem::create_directory(job);
  std::filesystem::create_directory(folder_ + "/archive");
  const std::string old = save(files_, job, layout, 1, 10, 1, 1).value();
  std::filesystem::rename(old, folder_ + "/archive/old");
  std::filesystem::create_symlink("../archive/old", old);
  std::vector<std::string> said;
  EXPECT_TRUE(set_strays_aside(files_, job, said));
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(open_checkpoint(files_, old));
  ASSERT_TRUE(save(files_, job, layout, 1, 20, 1, 2));
  const auto removed = retain(files_, job, Retention{1, 0, ""});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, std::vector<std::string>{old});
  EXPECT_EQ(*files_.kind_of(old), EntryKind::kNone);
  EXPECT_TRUE(open_checkpoint(files_, folder_ + "/archive/old"));
}

// On NFS, an exclusive lock works only on a file that is open for writing (flock(2)).
TEST_F(DiskFilesTest, ExclusiveLockIsThatOfAFileOpenForWriting) {
  const auto lock = lock_job_folder(files_, folder_, "job");
  ASSERT_TRUE(lock) << lock.error().message;
  bool is_found = false;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) != folder_ + "/job/.lock") continue;
    const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFL);
    is_found = is_found || (flags & O_ACCMODE) == O_RDWR;
  }
  EXPECT_TRUE(is_found);
}

TEST_F(DiskFilesTest, LinksAreFollowedToWhatTheyNameAndThoseAboveItStay) {
  std::filesystem::create_directories(folder_ + "/there/one");
  std::filesystem::create_symlink("there", folder_ + "/above");
  std::filesystem::create_symlink("one", folder_ + "/there/newest");
  std::filesystem::create_symlink(folder_ + "/there/newest", folder_ + "/latest");
  for (const char* path : {"/latest", "/latest/", "/there/newest", "/there/one"})
    EXPECT_EQ(files_.follow_links(folder_ + path).value_or(""), folder_ + "/there/one") << path;
  EXPECT_EQ(files_.follow_links(folder_ + "/above/newest").value_or(""), folder_ + "/above/one");
  EXPECT_FALSE(files_.follow_links(folder_ + "/nowhere"));
  std::filesystem::create_symlink("round", folder_ + "/round");
  EXPECT_FALSE(files_.follow_links(folder_ + "/round"));
}

TEST_F(DiskFilesTest, FileTakesThePlaceOfTheOneBefore) {
  ASSERT_TRUE(write_text(files_, folder_ + "/f", "old"));
  ASSERT_TRUE(write_text(files_, folder_ + "/g", "new"));
  const Status replaced = files_.replace(folder_ + "/g", folder_ + "/f");
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_EQ(read_text(files_, folder_ + "/f", 10).value_or(""), "new");
  EXPECT_EQ(files_.list(folder_)->size(), 1u);
}

TEST_F(DiskFilesTest, ErrorsNameThePathAndWhatToDo) {
  ASSERT_TRUE(write_text(files_, folder_ + "/f", "text"));
  EXPECT_FALSE(files_.create(folder_ + "/f")) << "nothing is overwritten";
  EXPECT_FALSE(files_.rename(folder_ + "/f", folder_ + "/f"));
  const auto missing = files_.open(folder_ + "/nothing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNoInput);
  const Status deep = files_.make_directory(folder_ + "/a/b");
  ASSERT_FALSE(deep);
  EXPECT_NE(deep.error().message.find("mounted"), std::string::npos) << deep.error().message;
  EXPECT_FALSE(files_.open(folder_)) << "a folder is no file";
  auto file = files_.create(folder_ + "/huge");
  ASSERT_TRUE(file);
  EXPECT_FALSE((*file)->reserve(std::uint64_t{1} << 62));
}

TEST_F(DiskFilesTest, FilesOfAnySizeAreWhatWasAppended) {
  for (const std::size_t size : {0, 1, 4095, 4096, 4097, 100'000, 4 << 20, (4 << 20) + 1, 9'999'999}) {
    std::vector<std::byte> content(size);
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<std::byte>(i * 2654435761u >> 13);
    const std::string path = folder_ + "/" + std::to_string(size);
    const auto file = files_.create(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->reserve(size));
    // Appends growing pieces, and then all remaining bytes at once.
    for (std::size_t at = 0, piece = 1; at < size; piece *= 7) {
      const std::size_t count = at > 20'000 ? size - at : std::min(piece, size - at);
      ASSERT_TRUE((*file)->append(Bytes(content).subspan(at, count)));
      at += count;
    }
    ASSERT_TRUE((*file)->sync());
    const auto read = files_.open(path);
    ASSERT_EQ((*read)->size(), size);
    std::vector<std::byte> out(size);
    ASSERT_TRUE((*read)->read_at(0, out));
    EXPECT_TRUE(out == content) << size;
  }
}

TEST_F(DiskFilesTest, AFileThatWasCutOffIsData) {
  ASSERT_TRUE(write_text(files_, folder_ + "/f", "text"));
  const auto file = files_.open(folder_ + "/f");
  std::vector<std::byte> out(5);
  const Status read = (*file)->read_at(0, out);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kData);
}

}  // namespace
}  // namespace disttrain::checkpoint
