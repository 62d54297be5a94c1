#include "common/checkpoint/job_folder.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"

namespace disttrain::checkpoint {
namespace {

class JobFolderTest : public testing::Test {
 protected:
  JobFolderTest() { EXPECT_TRUE(files_.make_directory("/job")); }
  std::string saved(std::uint64_t generation, std::uint64_t step) {
    const Result<std::string> path = save(files_, "/job", layout_, generation, step, 1, ++attempts_);
    EXPECT_TRUE(path) << path.error().message;
    return path.value_or("");
  }
  std::vector<std::string> names() {
    std::vector<std::string> names;
    const auto found = list_checkpoints(files_, "/job");
    for (const Found& one : *found) names.push_back(one.path.substr(5));
    return names;
  }
  std::uint64_t newest_step() {
    std::vector<std::string> broken;
    std::set<std::string> damaged;
    const auto open = open_newest(files_, "/job", broken, damaged);
    EXPECT_TRUE(open.has_value()) << open.error().message;
    return *open ? (*open)->manifest.step.value : 0;
  }
  void fail_at(MemoryFiles::Op op, ErrorCode code = ErrorCode::kFailed) {
    files_.fault = [op, code](MemoryFiles::Op asked, const std::string& path) -> std::optional<Error> {
      if (asked == op) return Error{code, "can't do it to " + path};
      return std::nullopt;
    };
  }

  MemoryFiles files_;
  const Layout layout_ = layout_of(small_model(), 2, 5);
  std::uint64_t attempts_ = 0;
};

TEST_F(JobFolderTest, NewestGoesByGenerationThenStep) {
  saved(1, 500);
  saved(2, 90);
  saved(2, 100);
  EXPECT_EQ(names(), (std::vector<std::string>{"gen-2-step-00000000000000000100", "gen-2-step-00000000000000000090",
                                               "gen-1-step-00000000000000000500"}));
  EXPECT_EQ(newest_step(), 100u);
}

TEST_F(JobFolderTest, DirectoryOfJobsIsNoCheckpointAndNamesTheNewestOfAll) {
  const auto save_created = [this](const std::string& folder, std::uint64_t generation, std::int64_t created) {
    const auto created_then = [created](const std::string&, Manifest& manifest) -> Status {
      manifest.created = created;
      return {};
    };
    EXPECT_TRUE(save(files_, folder, layout_, generation, 20, 1, ++attempts_, false, created_then));
  };
  const auto why = [this] {
    const auto open = open_named(files_, "/all");
    EXPECT_EQ(open.error().code, ErrorCode::kNoInput);
    return open.error().message;
  };
  for (const char* folder : {"/all", "/all/a", "/all/b", "/all/empty"}) ASSERT_TRUE(files_.make_directory(folder));
  EXPECT_EQ(why(),
            "no checkpoint in /all: expected the folder of one checkpoint, with its MANIFEST.json, or a job's "
            "folder of checkpoints");
  save_created("/all/b", 1, 100);
  EXPECT_EQ(why(),
            "no checkpoint in /all: it holds the folder of a job; name a job's folder or one checkpoint, such as the "
            "newest, /all/b/gen-1-step-00000000000000000020");
  save_created("/all/a", 1, 300);
  save_created("/all/b", 2, 200);
  EXPECT_EQ(why(),
            "no checkpoint in /all: it holds the folders of 2 jobs; name a job's folder or one checkpoint, such as the "
            "newest, /all/a/gen-1-step-00000000000000000020");
}

TEST_F(JobFolderTest, WhatIsNotNamedLikeACheckpointIsNone) {
  for (const char* name :
       {"gen-1-step-12", "gen-x-step-00000000000000000001", ".tmp-1-1", "gen-01-step-00000000000000000001"})
    ASSERT_TRUE(files_.make_directory("/job/" + std::string(name)));
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(newest_step(), 0u);
  EXPECT_TRUE(list_checkpoints(files_, "/nowhere")->empty());
}

TEST_F(JobFolderTest, BrokenManifestIsSetAsideNamedAndTheOneBeforeIsTaken) {
  saved(1, 10);
  const std::string path = saved(1, 20);
  files_.content(path + "/MANIFEST.json").resize(100);
  std::vector<std::string> broken;
  std::set<std::string> damaged;
  const auto open = open_newest(files_, "/job", broken, damaged);
  ASSERT_TRUE(open.has_value() && *open);
  EXPECT_EQ((*open)->manifest.step, Step(10));
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_NE(broken[0].find(path), std::string::npos);
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(JobFolderTest, BrokenOneThatKeepsItsNameIsNotedAndSkipped) {
  saved(1, 10);
  const std::string path = saved(1, 20);
  files_.content(path + "/MANIFEST.json").resize(100);
  fail_at(MemoryFiles::Op::kRename, ErrorCode::kNoPermission);
  std::vector<std::string> broken;
  std::set<std::string> damaged;
  const auto open = open_newest(files_, "/job", broken, damaged);
  ASSERT_TRUE(open.has_value() && *open);
  EXPECT_EQ((*open)->manifest.step, Step(10));
  EXPECT_EQ(broken.size(), 1u);
  EXPECT_EQ(damaged, std::set<std::string>{path});
  broken.clear();
  const auto again = open_newest(files_, "/job", broken, damaged);
  ASSERT_TRUE(again.has_value() && *again);
  EXPECT_TRUE(broken.empty()) << "it was told before";
}

// The file system goes away after the list was read.
TEST_F(JobFolderTest, FolderThatGoesAwayIsNotTakenForDamaged) {
  saved(1, 10);
  files_.fault = [](MemoryFiles::Op, const std::string& path) {
    return std::optional(Error{ErrorCode::kNoInput, path + ": no such file"});
  };
  std::vector<std::string> broken;
  std::set<std::string> damaged;
  const auto open = open_newest(files_, "/job", broken, damaged);
  ASSERT_FALSE(open.has_value());
  EXPECT_EQ(open.error().code, ErrorCode::kFailed);
  EXPECT_TRUE(broken.empty());
}

TEST_F(JobFolderTest, NewerFormatIsNotPassedOver) {
  saved(1, 10);
  const std::string path = saved(1, 20);
  std::vector<std::byte>& content = files_.content(path + "/MANIFEST.json");
  const std::string newer = R"({"format": 9})";
  content.assign(reinterpret_cast<const std::byte*>(newer.data()),
                 reinterpret_cast<const std::byte*>(newer.data()) + newer.size());
  std::vector<std::string> broken;
  std::set<std::string> damaged;
  const auto open = open_newest(files_, "/job", broken, damaged);
  ASSERT_FALSE(open.has_value());
  EXPECT_EQ(open.error().code, ErrorCode::kConfig);
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(JobFolderTest, RetentionKeepsTheNewestAndTheMultiples) {
  for (std::uint64_t step = 10; step <= 60; step += 10) saved(1, step);
  const auto removed = retain(files_, "/job", Retention{2, 30, ""});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->size(), 3u);
  EXPECT_EQ(names(), (std::vector<std::string>{"gen-1-step-00000000000000000060", "gen-1-step-00000000000000000050",
                                               "gen-1-step-00000000000000000030"}));
}

TEST_F(JobFolderTest, RetentionKeepsThePinnedOnes) {
  const std::string oldest = saved(1, 10);
  for (std::uint64_t step = 20; step <= 40; step += 10) saved(1, step);
  ASSERT_TRUE(retain(files_, "/job", Retention{1, 0, "", {oldest}}));
  EXPECT_EQ(names(), (std::vector<std::string>{"gen-1-step-00000000000000000040", "gen-1-step-00000000000000000010"}));
  ASSERT_TRUE(retain(files_, "/job", Retention{1, 0, "", {}}));
  EXPECT_EQ(names(), std::vector<std::string>{"gen-1-step-00000000000000000040"});
}

// The chief dies, or a disk fails, before the renaming of a checkpoint that is being removed is synced. What the next
// attempt removes of it must not be missing under the old name.
TEST_F(JobFolderTest, CrashAfterALeftoverWasRemovedBringsBackNoPartOfIt) {
  const std::string path = saved(1, 10);
  files_.assume_durable();
  ASSERT_TRUE(files_.rename(path, "/job/.del-gen-1-step-00000000000000000010"));
  ASSERT_TRUE(begin_attempt(files_, "/job", Generation(1), 7));
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const auto left = files_.after_crash(files_.operations(), random);
    const auto names = list_checkpoints(*left, "/job");
    for (const Found& found : *names) {
      const auto open = open_checkpoint(*left, found.path);
      ASSERT_TRUE(open) << "seed " << seed << ": " << open.error().message;
      EXPECT_TRUE(verify_files(*left, found.path, open->manifest)) << "seed " << seed;
    }
  }
}

TEST_F(JobFolderTest, RetentionNeverRemovesTheLastGoodOne) {
  saved(1, 10);
  saved(1, 20);
  const std::string newest = saved(1, 30);
  files_.content(newest + "/shard-0-of-2.safetensors").back() ^= std::byte{1};
  ASSERT_TRUE(retain(files_, "/job", Retention{1, 0, ""}));
  EXPECT_EQ(names(), (std::vector<std::string>{"gen-1-step-00000000000000000030", "gen-1-step-00000000000000000020"}));
}

TEST_F(JobFolderTest, OneThatWasJustCommittedIsGoodIfItsFilesHaveTheirSizes) {
  saved(1, 10);
  saved(1, 20);
  const std::string newest = saved(1, 30);
  files_.content(newest + "/shard-0-of-2.safetensors").pop_back();
  ASSERT_TRUE(retain(files_, "/job", Retention{1, 0, newest}));
  EXPECT_EQ(names().size(), 2u) << "the one before stays";
  const std::string next = saved(1, 40);
  ASSERT_TRUE(retain(files_, "/job", Retention{1, 0, next}));
  EXPECT_EQ(names(), std::vector<std::string>{"gen-1-step-00000000000000000040"});
}

TEST_F(JobFolderTest, RetentionRemovesNothingThatIsBeingRead) {
  const std::string oldest = saved(1, 10);
  saved(1, 20);
  {
    const Result<OpenCheckpoint> reader = open_checkpoint(files_, oldest);
    ASSERT_TRUE(reader);
    EXPECT_TRUE(retain(files_, "/job", Retention{1, 0, ""})->empty());
    EXPECT_TRUE(load(files_, *reader, layout_));
  }
  EXPECT_EQ(retain(files_, "/job", Retention{1, 0, ""})->size(), 1u);
}

TEST_F(JobFolderTest, LeftoversAreClearedByTheNextAttempt) {
  ASSERT_TRUE(begin_attempt(files_, "/job", Generation(1), 1));
  ASSERT_TRUE(write_text(files_, attempt_path("/job", Generation(1), 1) + "/half", "x"));
  ASSERT_TRUE(files_.make_directory("/job/.del-gen-1-step-00000000000000000001"));
  saved(1, 10);
  EXPECT_EQ(files_.list("/job")->size(), 1u);
}

TEST_F(JobFolderTest, SecondCommitOfTheSameStepLeavesTheFirst) {
  const std::string path = saved(1, 10);
  EXPECT_EQ(saved(1, 10), path);
  EXPECT_EQ(files_.list("/job")->size(), 1u);
}

// The first one failed after its rename.
TEST_F(JobFolderTest, SecondCommitOfTheSameStepMakesTheFirstOnesNameDurable) {
  files_.fault = [](MemoryFiles::Op op, const std::string& path) -> std::optional<Error> {
    if (op == MemoryFiles::Op::kSyncDirectory && path == "/job") return Error{ErrorCode::kFailed, "input/output error"};
    return std::nullopt;
  };
  EXPECT_FALSE(save(files_, "/job", layout_, 1, 10, 1, ++attempts_));
  EXPECT_EQ(names().size(), 1u);
  EXPECT_FALSE(save(files_, "/job", layout_, 1, 10, 1, ++attempts_)) << "its name isn't durable yet";
  files_.fault = {};
  saved(1, 10);
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(JobFolderTest, CheckpointThatCantBeReadNowIsntTakenForADamagedOne) {
  const std::string path = saved(1, 10);
  files_.fault = [path](MemoryFiles::Op op, const std::string& at) -> std::optional<Error> {
    if (op == MemoryFiles::Op::kOpen && at.starts_with(path + "/shard-"))
      return Error{ErrorCode::kFailed, "input/output error"};
    return std::nullopt;
  };
  EXPECT_FALSE(save(files_, "/job", layout_, 1, 10, 1, ++attempts_));
  files_.fault = {};
  EXPECT_EQ(newest_step(), 10u);
  EXPECT_TRUE(list_set_aside(files_, "/job")->empty());
}

TEST_F(JobFolderTest, SecondCommitOfTheSameStepTakesThePlaceOfADamagedOne) {
  const std::string path = saved(1, 10);
  files_.content(path + "/shard-0-of-2.safetensors").back() ^= std::byte{1};
  EXPECT_EQ(saved(1, 10), path);
  const auto open = open_checkpoint(files_, path);
  ASSERT_TRUE(open) << open.error().message;
  EXPECT_TRUE(load(files_, *open, layout_));
  EXPECT_EQ(list_set_aside(files_, "/job")->size(), 1u);
}

TEST_F(JobFolderTest, SecondCommitOfTheSameStepTakesThePlaceOfOneWithoutManifest) {
  const std::string path = saved(1, 10);
  ASSERT_TRUE(files_.remove_file(path + "/MANIFEST.json"));
  EXPECT_EQ(saved(1, 10), path);
  EXPECT_EQ(newest_step(), 10u);
  EXPECT_TRUE(is_set_aside(files_, path));
}

TEST_F(JobFolderTest, CommitTakesThePlaceOfAFile) {
  const std::string path = saved(1, 10);
  ASSERT_TRUE(remove_all(files_, path));
  ASSERT_TRUE(files_.create(path));
  EXPECT_EQ(saved(1, 10), path);
  EXPECT_EQ(newest_step(), 10u);
}

TEST_F(JobFolderTest, TokenThatCannotBeReadIsNoOtherFolder) {
  ASSERT_TRUE(write_token(files_, "/job", 7));
  EXPECT_TRUE(check_token(files_, "/job", 7));
  EXPECT_EQ(check_token(files_, "/job", 8).error().code, ErrorCode::kConfig);
  EXPECT_EQ(check_token(files_, "/elsewhere", 7).error().code, ErrorCode::kConfig);
  fail_at(MemoryFiles::Op::kOpen);
  EXPECT_EQ(check_token(files_, "/job", 7).error().code, ErrorCode::kFailed) << "a later try may succeed";
}

TEST_F(JobFolderTest, TokenIsReadAsItWasWritten) {
  ASSERT_TRUE(write_token(files_, "/job", ~std::uint64_t{0}));
  EXPECT_EQ(read_token(files_, "/job").value_or(0), ~std::uint64_t{0});
  files_.content("/job/.token").push_back(std::byte{'x'});
  EXPECT_EQ(read_token(files_, "/job").error().code, ErrorCode::kData);
  EXPECT_EQ(read_token(files_, "/elsewhere").error().code, ErrorCode::kNoInput);
}

TEST_F(JobFolderTest, CrashWhileTheTokenIsWrittenLeavesTheOldOneOrTheNew) {
  ASSERT_TRUE(write_token(files_, "/job", 7));
  files_.assume_durable();
  const std::size_t before = files_.operations();
  ASSERT_TRUE(write_token(files_, "/job", 8));
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    for (std::size_t done = before; done <= files_.operations(); ++done) {
      Random random(seed);
      const auto left = files_.after_crash(done, random);
      EXPECT_TRUE(check_token(*left, "/job", 7) || check_token(*left, "/job", 8)) << "seed " << seed;
      ASSERT_TRUE(write_token(*left, "/job", 9)) << "leftovers don't block the next write";
      EXPECT_TRUE(check_token(*left, "/job", 9));
    }
}

TEST_F(JobFolderTest, TokenThatCannotBeWrittenLeavesTheOldOne) {
  using Op = MemoryFiles::Op;
  ASSERT_TRUE(write_token(files_, "/job", 7));
  for (const Op op : {Op::kCreate, Op::kAppend, Op::kSync, Op::kRename}) {
    fail_at(op);
    EXPECT_FALSE(write_token(files_, "/job", 8));
    files_.fault = {};
    EXPECT_TRUE(check_token(files_, "/job", 7)) << static_cast<int>(op);
  }
}

TEST_F(JobFolderTest, SecondJobOnTheFolderIsRefused) {
  auto first = lock_job_folder(files_, "", "job");
  ASSERT_TRUE(first) << first.error().message;
  const auto second = lock_job_folder(files_, "", "job");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConfig);
  first->reset();
  EXPECT_TRUE(lock_job_folder(files_, "", "job"));
}

TEST_F(JobFolderTest, WhereNoVariableIsCutTheUsualIndexNamesTheFiles) {
  const Layout whole = layout_of(small_model(), 1, 1000);
  const std::string path = *save(files_, "/job", whole, 1, 10);
  const auto index = read_text(files_, path + "/model.safetensors.index.json", 1 << 20);
  ASSERT_TRUE(index);
  EXPECT_NE(index->find(R"("w1": "shard-0-of-1.safetensors")"), std::string::npos) << *index;
  EXPECT_TRUE(verify_files(files_, path, open_checkpoint(files_, path)->manifest));
}

// Each operation fails once. Then save() returns an error, the previous checkpoint is still there, and the next attempt
// succeeds.
TEST_F(JobFolderTest, FailureOfAnyOperationLeavesTheOneBefore) {
  using Op = MemoryFiles::Op;
  saved(1, 10);
  for (const Op op :
       {Op::kCreate, Op::kReserve, Op::kAppend, Op::kSync, Op::kMakeDirectory, Op::kRename, Op::kSyncDirectory}) {
    fail_at(op);
    const Result<std::string> path = save(files_, "/job", layout_, 1, 20, 1, ++attempts_);
    files_.fault = {};
    ASSERT_FALSE(path) << static_cast<int>(op);
    EXPECT_NE(path.error().message.find("/job"), std::string::npos);
    EXPECT_EQ(newest_step(), 10u);
  }
  EXPECT_EQ(saved(1, 20), "/job/gen-1-step-00000000000000000020");
  EXPECT_EQ(newest_step(), 20u);
}

TEST_F(JobFolderTest, VanishedFolderIsSaid) {
  const Result<std::string> path = save(files_, "/gone", layout_, 1, 10);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::kNoInput);
}

}  // namespace
}  // namespace disttrain::checkpoint
