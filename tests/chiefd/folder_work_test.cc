// The chief opens the checkpoint folder of a job, and finds the checkpoint that the job begins with.
#include "chiefd/folder_work.h"

#include <memory>

#include "tests/chiefd/folder_work_fixture.h"

namespace disttrain::chiefd {
namespace {

TEST_F(FolderWorkTest, NewestIsFoundWhetherOrNotTheChiefKnowsOfIt) {
  const std::string path = saved(5);
  for (const std::string& committed : {std::string(), path}) {
    const auto answer = open(committed);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->newest->path, path);
    EXPECT_TRUE(answer->broken.empty());
  }
}

TEST_F(FolderWorkTest, EmptyFolderAfterACommitCountsAsNotMounted) {
  const auto answer = open("/c/small/gen-1-step-00000000000000000005");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kFailed) << "with another code the chief would not wait for it";
  EXPECT_NE(answer.error().message.find("is its file system mounted?"), std::string::npos) << answer.error().message;
  EXPECT_EQ(files_.list("/c")->size(), 0u) << "nothing is made where the file system will be";
}

TEST_F(FolderWorkTest, StrayIsToldThoughTheFolderCantBeSyncedAtFirst) {
  saved(5);
  const std::string newest = "/c/small/gen-1-step-00000000000000000009";
  ASSERT_TRUE(checkpoint::write_text(files_, newest, "no folder"));
  JobFolder folder(files_, [] { return std::int64_t{0}; });
  const OpenFolder work{"/c", "small", false, 7, ""};
  files_.fault = [](checkpoint::MemoryFiles::Op op, const std::string& path) -> std::optional<Error> {
    if (op == checkpoint::MemoryFiles::Op::kSyncDirectory && path == "/c/small")
      return Error{ErrorCode::kFailed, "can't sync " + path};
    return std::nullopt;
  };
  EXPECT_FALSE(folder.carry_out(work));
  files_.fault = nullptr;
  const auto opened = folder.carry_out(work);
  ASSERT_TRUE(opened) << opened.error().message;
  const std::string told = newest + " is a file; expected a folder: it was renamed to .broken-";
  EXPECT_NE(opened->warning.find(told), std::string::npos) << opened->warning;
}

TEST_F(FolderWorkTest, InitOfAJobsFolderIsItsNewestAndIsKeptWhileTheJobLives) {
  const std::string first = saved(5);
  auto folder = std::make_unique<JobFolder>(files_, [] { return std::int64_t{0}; });
  const auto answer = folder->carry_out(FindInit{"/c/small"});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->path, first);
  const std::string second = saved(9);
  ASSERT_TRUE(checkpoint::retain(files_, "/c/small", {1, 0, second}));
  EXPECT_TRUE(files_.list(first)) << "its parameters may be read again";
  folder.reset();
  ASSERT_TRUE(checkpoint::retain(files_, "/c/small", {1, 0, second}));
  EXPECT_FALSE(files_.list(first));
}

TEST_F(FolderWorkTest, InitWithFurtherVariablesIsToldOnce) {
  saved(5);
  const auto find = [this](FindInit work) {
    work.path = "/c/small";
    return JobFolder(files_, [] { return std::int64_t{0}; }).carry_out(work);
  };
  ModelSpec model = checkpoint::small_model();
  EXPECT_EQ(find({.path = "", .model = model})->ignored, "");
  model.variables.pop_back();
  EXPECT_NE(find({.path = "", .model = model})->ignored.find("is ignored, because the job trains no variable"),
            std::string::npos);
  EXPECT_EQ(find({.path = ""})->ignored, "") << "a restarted chief has told it before";
}

TEST_F(FolderWorkTest, InitThatIsNoCheckpointOrIsMissingIsLeftToThePs) {
  for (const std::string path : {"/away", "/nowhere/model.safetensors"}) {
    const auto answer = JobFolder(files_, [] { return std::int64_t{0}; }).carry_out(FindInit{path});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->path, path);
  }
}

TEST_F(FolderWorkTest, FoldersAtTheNamesOfTheChiefsFilesAreSetAside) {
  ASSERT_TRUE(files_.make_directory("/c/small"));
  for (const char* name : {"best.safetensors", "best.safetensors.new", "evaluations.json", "evaluations.json.new"}) {
    ASSERT_TRUE(files_.make_directory(std::string("/c/small/") + name));
    const auto answer = open("");
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->warning,
              std::string("/c/small/") + name + " is a folder; expected a file: it was renamed to " + ".stray-" + name);
  }
}

}  // namespace
}  // namespace disttrain::chiefd
