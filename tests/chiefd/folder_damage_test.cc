// Checkpoints of a job that are damaged or gone: the chief sets them aside, reports them, and takes the one before.
#include "tests/chiefd/folder_work_fixture.h"

namespace disttrain::chiefd {
namespace {

TEST_F(FolderWorkTest, MissingCheckpointIsReportedAndTheOneBeforeIsTaken) {
  const std::string older = saved(5);
  const std::string newest = saved(9);
  ASSERT_TRUE(checkpoint::remove_all(files_, newest));
  const auto answer = open(newest);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->newest->path, older);
  ASSERT_EQ(answer->broken.size(), 1u);
  EXPECT_EQ(answer->broken[0], newest + " was committed, but is gone");
}

TEST_F(FolderWorkTest, CheckpointThatWasSetAsideIsNotReportedAsMissing) {
  saved(3);
  const std::string newest = saved(5);
  ASSERT_TRUE(checkpoint::set_aside(files_, newest));
  const auto answer = open(newest);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->newest->step, Step(3));
  EXPECT_TRUE(answer->broken.empty());
}

// If a file system isn't mounted, its mount point is an empty folder. A folder that has a damaged checkpoint isn't
// empty, so its file system is mounted.
TEST_F(FolderWorkTest, FolderThatHoldsADamagedCheckpointIsMounted) {
  const std::string older = saved(3);
  const std::string newest = saved(5);
  ASSERT_TRUE(checkpoint::set_aside(files_, older));
  ASSERT_TRUE(checkpoint::remove_all(files_, newest));
  const auto answer = open(newest);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(answer->newest);
  ASSERT_FALSE(answer->broken.empty());
  EXPECT_EQ(answer->broken[0], newest + " was committed, but is gone");
}

TEST_F(FolderWorkTest, FolderWithoutCheckpointsNamesNoneAsBroken) {
  const auto answer = open("");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(answer->newest);
  EXPECT_TRUE(answer->broken.empty());
}

TEST_F(FolderWorkTest, CheckpointsSetAsideEarlierAreNamedWhereThereIsNoOther) {
  const std::string older = saved(3);
  const std::string newest = saved(5);
  for (const std::string& path : {older, newest}) files_.content(path + "/" + checkpoint::kManifestName).resize(10);
  const auto at_first = open("");
  ASSERT_TRUE(at_first) << at_first.error().message;
  EXPECT_FALSE(at_first->newest);
  EXPECT_EQ(at_first->broken.size(), 2u);
  for (const std::string& committed : {std::string(), newest}) {
    const auto answer = open(committed);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_FALSE(answer->newest);
    ASSERT_EQ(answer->broken.size(), 2u);
    EXPECT_EQ(answer->broken[0], "/c/small/.broken-gen-1-step-00000000000000000003 was damaged and set aside earlier");
  }
}

TEST_F(FolderWorkTest, OnlyCheckpointIsNamedAfterAPsFindsItDamaged) {
  JobFolder folder(files_, [] { return std::int64_t{0}; });
  const std::string only = saved(5);
  ASSERT_TRUE(folder.carry_out(OpenFolder{"/c", "small", false, 7, ""}));
  const auto answer = folder.carry_out(SetAside{only, 8});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(answer->newest);
  EXPECT_EQ(answer->broken.size(), 1u);
}

// Its manifest is readable. If it were found again, the job would restore it again and again.
TEST_F(FolderWorkTest, DamagedCheckpointThatCantBeSetAsideIsNotTheNewest) {
  for (const ErrorCode why : {ErrorCode::kNoPermission, ErrorCode::kFailed}) {
    JobFolder folder(files_, [] { return std::int64_t{0}; });
    files_.fault = nullptr;
    const std::string older = saved(3);
    const std::string damaged = saved(5);
    ASSERT_TRUE(folder.carry_out(OpenFolder{"/c", "small", false, 7, ""}));
    let_nothing_be_written(why);
    EXPECT_EQ(folder.carry_out(SetAside{damaged, 8}).has_value(), why == ErrorCode::kNoPermission);
    const auto answer = folder.carry_out(FindNewest{8, damaged, ""});
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(answer->newest);
    EXPECT_EQ(answer->newest->path, older);
  }
}

}  // namespace
}  // namespace disttrain::chiefd
