#include "chiefd/curves/tensorboard_file.h"

#include <gmock/gmock.h>
#include <sys/inotify.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include "chiefd/curves/tensorboard_writer.h"
#include "tests/chiefd/curves/event_folder.h"

namespace disttrain::chiefd {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// While this object lives, no file that this process writes can grow beyond `bytes`.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit few{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &few);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &old_); }
  FullDisk(const FullDisk&) = delete;

 private:
  rlimit old_{};
};

// Returns true if `is_true` became true within a minute. Only a broken writer takes that long.
template <typename Predicate>
bool until(const Predicate& is_true) {
  for (const auto end = std::chrono::steady_clock::now() + 1min; !is_true(); std::this_thread::yield())
    if (std::chrono::steady_clock::now() > end) return false;
  return true;
}

// The expected bytes. The Python package tensorboard 2.20.0 writes them for the same messages.
TEST(EventRecords, AreTensorBoardsBytes) {
  EXPECT_EQ(hexadecimal(version_record(kWall)),
            "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
  EXPECT_EQ(
      hexadecimal(scalars_record(kWall, 300, {{"train/loss", 0.25}, {"a", 1.0}})),
      "2b00000000000000861bc34b0900002040fc54d94110ac022a1d0a110a0a747261696e2f6c6f7373150000803e0a080a01611500008"
      "03f71c5d18e");
  EXPECT_EQ(hexadecimal(restart_record(kWall, 121)), "0f000000000000006d532b090900002040fc54d94110793a0208014cd8a64e");
}

TEST(TensorBoardFile, FilesMadeInTheSameSecondHaveDifferentNames) {
  const EventFolder folder;
  const std::string events = folder.path() / "events";
  {
    Result<TensorBoardFile> first = TensorBoardFile::create(events, kWall);
    Result<TensorBoardFile> second = TensorBoardFile::create(events, kWall);
    ASSERT_TRUE(first && second);
    ASSERT_TRUE(first->append("a"));
    ASSERT_TRUE(second->append("b"));
  }
  const std::string version = version_record(kWall);
  EXPECT_EQ(folder.bytes("events"), version + "a" + version + "b");
}

TEST(TensorBoardFile, FolderWhoseParentIsMissingIsNotMade) {
  const EventFolder folder;
  EXPECT_FALSE(TensorBoardFile::create(folder.path() / "job" / "events", kWall));
  EXPECT_FALSE(fs::exists(folder.path() / "job"));
}

TEST(TensorBoardFile, FullDiskIsAnError) {
  const EventFolder folder;
  Result<TensorBoardFile> file = TensorBoardFile::create(folder.path() / "events", kWall);
  ASSERT_TRUE(file);
  const auto append = [&file](std::size_t bytes) {
    const FullDisk full(60);
    return file->append(std::string(bytes, 'x'));
  };
  const Status whole = append(10);
  const Status half = append(100);
  const Status none = append(1);
  EXPECT_TRUE(whole);
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message, testing::HasSubstr("disk is full"));
  EXPECT_FALSE(none);
}

TEST(TensorBoardFile, FullDiskLeavesNoEmptyFile) {
  const EventFolder folder;
  const FullDisk full(10);
  EXPECT_FALSE(TensorBoardFile::create(folder.path() / "events", kWall));
  EXPECT_TRUE(fs::is_empty(folder.path() / "events"));
}

TEST(TensorBoardWriter, FolderThatWasMovedAwayIsMadeAgain) {
  const EventFolder folder;
  const std::string events = folder.path() / "events";
  {
    TensorBoardWriter writer(folder.path() / "events", [](const std::string& why) { ADD_FAILURE() << why; });
    writer.write(kWall, "a");
    ASSERT_TRUE(until([&] { return fs::exists(events) && folder.bytes("events").ends_with('a'); }));
    fs::rename(events, folder.path() / "away");
    writer.write(kWall, "b");
  }
  EXPECT_EQ(folder.bytes("away"), version_record(kWall) + "a");
  EXPECT_EQ(folder.bytes("events"), version_record(kWall) + "b");
}

// A failed write is retried. The last retry comes when the writer ends.
TEST(TensorBoardWriter, NothingIsLostByADiskThatWasFull) {
  const EventFolder folder;
  std::atomic<int> told = 0;
  {
    TensorBoardWriter writer(folder.path() / "events", [&told](const std::string&) { ++told; });
    {
      const FullDisk full(10);
      for (const char* record : {"a", "b", "c"}) writer.write(kWall, record);
      ASSERT_TRUE(until([&told] { return told > 0; }));
    }
    writer.write(kWall, "d");
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(folder.bytes("events"), version_record(kWall) + "abcd");
}

TEST(TensorBoardWriter, FullDiskIsRetriedSeldomHoweverManyRecordsWait) {
  const EventFolder folder;
  fs::create_directory(folder.path() / "events");
  const int watch = ::inotify_init1(IN_NONBLOCK);
  ASSERT_GE(::inotify_add_watch(watch, (folder.path() / "events").c_str(), IN_CREATE), 0);
  std::atomic<int> told = 0;
  {
    const FullDisk full(10);
    TensorBoardWriter writer(folder.path() / "events", [&told](const std::string&) { ++told; });
    for (int i = 0; i < 1000; ++i) writer.write(kWall, "x");
    ASSERT_TRUE(until([&told] { return told > 0; }));
  }
  int files = 0;
  std::array<char, 1024> events{};
  for (ssize_t bytes = 0; (bytes = ::read(watch, events.data(), events.size())) > 0;)
    for (ssize_t at = 0; at < bytes; ++files) {
      inotify_event event{};
      std::memcpy(&event, events.data() + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  ::close(watch);
  EXPECT_GE(files, 1);
  EXPECT_LT(files, 10);
}

TEST(TensorBoardWriter, CloseClosesTheFile) {
  const EventFolder folder;
  const std::string events = folder.path() / "events";
  {
    TensorBoardWriter writer(folder.path() / "events", [](const std::string& why) { ADD_FAILURE() << why; });
    writer.write(kWall, "a");
    ASSERT_TRUE(until([&folder] { return folder.is_held(); }));
    writer.close();
    ASSERT_TRUE(until([&folder] { return !folder.is_held(); }));
    writer.write(kWall + 1, "b");
  }
  EXPECT_TRUE(folder.bytes("events").ends_with("b"));
}

}  // namespace
}  // namespace disttrain::chiefd
