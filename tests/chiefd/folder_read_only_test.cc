// A folder that has become read-only: a job that has it goes on from its newest checkpoint, and a new job fails.
#include "tests/chiefd/folder_work_fixture.h"

namespace disttrain::chiefd {
namespace {

TEST_F(FolderWorkTest, ChiefThatHasTheFolderOpenFindsTheNewestWithoutWriting) {
  JobFolder folder(files_, [] { return std::int64_t{0}; });
  const std::string path = saved(5);
  ASSERT_TRUE(folder.carry_out(OpenFolder{"/c", "small", false, 7, ""}));
  for (const ErrorCode why : {ErrorCode::kNoPermission, ErrorCode::kFailed}) {
    let_nothing_be_written(why);
    const auto answer = folder.carry_out(FindNewest{8, path});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->newest->path, path);
    EXPECT_TRUE(checkpoint::check_token(files_, "/c/small", answer->mark))
        << "each ps recognises the folder as the chief's";
    EXPECT_EQ(answer->mark, 7u) << "the token that could be written";
    const auto attempt = folder.carry_out(BeginAttempt{Generation(2), 1});
    ASSERT_FALSE(attempt);
    EXPECT_EQ(attempt.error().message, "can't write /c/small/.tmp-2-1");
  }
}

TEST_F(FolderWorkTest, RestartedChiefFindsTheNewestWithoutWriting) {
  const std::string path = saved(5);
  ASSERT_TRUE(open(""));
  let_nothing_be_written();
  const auto answer = open(path);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->newest->path, path);
}

TEST_F(FolderWorkTest, NewJobFailsAtOnceIfItsFolderCannotBeWritten) {
  saved(5);
  ASSERT_TRUE(open(""));
  let_nothing_be_written();
  const auto answer = open("");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kNoPermission) << answer.error().message;
}

TEST_F(FolderWorkTest, DamagedCheckpointThatCannotBeSetAsideIsSkipped) {
  JobFolder folder(files_, [] { return std::int64_t{0}; });
  const std::string oldest = saved(5);
  const std::string older = saved(7);
  const std::string newest = saved(9);
  ASSERT_TRUE(folder.carry_out(OpenFolder{"/c", "small", false, 7, ""}));
  files_.content(newest + "/" + checkpoint::kManifestName).resize(10);
  let_nothing_be_written();
  const auto without_manifest = folder.carry_out(FindNewest{8, newest});
  ASSERT_TRUE(without_manifest) << without_manifest.error().message;
  EXPECT_EQ(without_manifest->newest->path, older);
  EXPECT_EQ(without_manifest->broken.size(), 1u);
  // A ps has reported that this checkpoint is damaged.
  const auto told = folder.carry_out(SetAside{older, 9});
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->newest->path, oldest);
  EXPECT_EQ(folder.carry_out(FindNewest{10, newest})->newest->path, oldest);
  const auto last = folder.carry_out(SetAside{oldest, 11});
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_FALSE(last->newest);
  EXPECT_FALSE(last->broken.empty());
}

}  // namespace
}  // namespace disttrain::chiefd
