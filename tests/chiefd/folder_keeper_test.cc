// The threads that work on checkpoint folders, on this machine's real disk. A test holds reads back, as a file system
// that hangs does.
#include "chiefd/folder_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/common/checkpoint/small_job.h"
#include "tests/shards/gated_files.h"

namespace disttrain::chiefd {
namespace {

using Gate = shards::test::GatedFiles::Op;

class FolderKeeperTest : public testing::Test {
 protected:
  FolderKeeperTest() {
    std::string pattern = testing::TempDir() + "disttrain-folders-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    for (const char* job : {"hung", "free"}) {
      std::filesystem::create_directory(folder_ + "/" + job);
      const auto path = checkpoint::save(disk_, folder_ + "/" + job,
                                         checkpoint::layout_of(checkpoint::small_model(), 2, 5), 1, 5, 1, 5);
      EXPECT_TRUE(path) << path.error().message;
    }
    keeper_ = std::make_unique<FolderKeeper>(files_, [this](FolderDone done) {
      const std::lock_guard lock(mutex_);
      done_.push_back(std::move(done));
      changed_.notify_all();
    });
  }
  ~FolderKeeperTest() override {
    files_.let_go();
    keeper_.reset();
    std::filesystem::remove_all(folder_);
  }

  void open(std::uint32_t job, const std::string& name) { open(job, folder_, name); }
  void open(std::uint32_t job, const std::string& directory, const std::string& name) {
    keeper_->give(FolderWork{JobId(job), Ticket(job), OpenFolder{directory, name, false, 7, ""}});
  }
  // Waits for the answer to this job's work.
  Result<FolderAnswer> answer(std::uint32_t job) {
    std::unique_lock lock(mutex_);
    const auto find = [&] {
      return std::find_if(done_.begin(), done_.end(), [&](const FolderDone& done) { return done.job == JobId(job); });
    };
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return find() != done_.end(); }))
      return fail(ErrorCode::kFailed, "no answer");
    FolderDone found = std::move(*find());
    done_.erase(find());
    return std::move(found.answer);
  }
  bool has_answer(std::uint32_t job) {
    const std::lock_guard lock(mutex_);
    return std::any_of(done_.begin(), done_.end(), [&](const FolderDone& done) { return done.job == JobId(job); });
  }
  void hold_reads_of(const std::string& name, std::uint32_t job = 1) {
    files_.hold(Gate::kRead, folder_ + "/" + name);
    open(job, name);
    while (!files_.is_waiting()) std::this_thread::yield();
  }
  // Opens a folder as job 1, and begins to export its best checkpoint, whose path it returns. The export is held.
  std::string begin_export() {
    open(1, "free");
    const auto opened = answer(1);
    EXPECT_TRUE(opened) << opened.error().message;
    files_.hold(Gate::kRead, "shard-");  // the export reads the shards
    found_.found.best_value = 0.5;
    keeper_->give(FolderWork{JobId(1), Ticket(9), KeepBest{opened->newest->path, false, {}, found_}});
    while (!files_.is_waiting()) std::this_thread::yield();
    return opened->newest->path;
  }
  // Waits until two threads of the keeper sleep: one is held, and the other waits for its folder.
  static void until_threads_sleep() {
    for (int asleep = 0; asleep != 2; std::this_thread::yield()) {
      asleep = 0;
      for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(task.path() / "stat");
        const std::string stat{std::istreambuf_iterator<char>(file), {}};
        if (stat.find("(folders) S ") != std::string::npos) ++asleep;
      }
    }
  }

  std::string folder_;
  checkpoint::DiskFiles disk_;
  shards::test::GatedFiles files_;
  std::mutex mutex_;  // guards done_
  std::condition_variable changed_;
  std::vector<FolderDone> done_;
  KeptEvaluations found_{"loss", false, {}};  // what job 1 has found
  std::unique_ptr<FolderKeeper> keeper_;
};

TEST_F(FolderKeeperTest, AFolderThatHangsDelaysNoOtherJob) {
  hold_reads_of("hung");
  open(2, "free");
  const auto opened = answer(2);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(opened->newest);
  EXPECT_FALSE(has_answer(1));
}

TEST_F(FolderKeeperTest, WorkOfAnEndedJobIsAbandonedAndItsFolderIsFreeForTheNext) {
  hold_reads_of("hung");
  keeper_->close(JobId(1));
  open(3, "hung");
  open(2, "free");
  EXPECT_TRUE(answer(2));
  EXPECT_FALSE(has_answer(3)) << "the thread of the ended job still holds the folder";
  files_.let_go();
  const auto abandoned = answer(1);
  ASSERT_FALSE(abandoned);
  EXPECT_EQ(abandoned.error().code, ErrorCode::kTemporary);
  EXPECT_NE(abandoned.error().message.find("its job has ended"), std::string::npos) << abandoned.error().message;
  const auto next = answer(3);
  EXPECT_TRUE(next) << next.error().message;
}

TEST_F(FolderKeeperTest, AJobThatEndsWhileItWaitsForAFolderIsAnswered) {
  hold_reads_of("hung");
  keeper_->close(JobId(1));
  open(3, "hung");
  keeper_->close(JobId(3));
  const auto waited = answer(3);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kTemporary);
}

// The next job may name the folder in another way.
TEST_F(FolderKeeperTest, FolderIsWaitedForUnderAnotherNameToo) {
  std::filesystem::create_directory_symlink(folder_, folder_ + "/link");
  std::filesystem::create_directory_symlink("hung", folder_ + "/alias");
  std::uint32_t job = 10;
  for (const auto& [directory, name] :
       {std::pair(folder_ + "/", "hung"), std::pair(folder_ + "/link/", "hung"), std::pair(folder_, "alias")}) {
    hold_reads_of("hung", job);
    keeper_->close(JobId(job));
    open(job + 1, directory, name);
    until_threads_sleep();
    files_.let_go();
    const auto next = answer(job + 1);
    EXPECT_TRUE(next) << directory << "/" << name << ": " << next.error().message;
    keeper_->close(JobId(job + 1));
    job += 2;
  }
}

TEST_F(FolderKeeperTest, ExportGoesOnWhenTheJobEnds) {
  const std::string best = begin_export();
  keeper_->close(JobId(1));
  files_.let_go();
  const auto exported = answer(1);
  ASSERT_TRUE(exported) << exported.error().message;
  EXPECT_EQ(exported->exported, best);
  open(2, "free");
  const auto next = answer(2);
  ASSERT_TRUE(next) << next.error().message;
  found_.found.exported = best;
  EXPECT_EQ(next->evaluations, found_);
}

// A job whose folder isn't open in time fails.
TEST_F(FolderKeeperTest, ExportOfAnEndedJobIsAbandonedForTheNextJobAndTheFindingsAreKept) {
  begin_export();
  keeper_->close(JobId(1));
  open(2, "free");
  until_threads_sleep();
  files_.let_go();
  const auto abandoned = answer(1);
  ASSERT_TRUE(abandoned) << abandoned.error().message;
  EXPECT_EQ(abandoned->exported, "");
  const auto next = answer(2);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->evaluations, found_);
  EXPECT_EQ(std::filesystem::exists(folder_ + "/free/best.safetensors"), false);
}

}  // namespace
}  // namespace disttrain::chiefd
