// The chief keeps the best checkpoint in the job's folder, and what the evaluations found.
#include "common/checkpoint/weights.h"
#include "tests/chiefd/folder_work_fixture.h"

namespace disttrain::chiefd {
namespace {

TEST_F(FolderWorkTest, TheBestIsExportedWithItsMetadataAndReplacesTheOneBefore) {
  const std::string first = saved(5);
  const std::string second = saved(9);
  JobFolder folder(files_, [] { return std::int64_t{0}; });
  ASSERT_TRUE(folder.carry_out(OpenFolder{"/c", "small", false, 7, second}));
  for (const std::string& best : {first, second}) {
    const auto answer = folder.carry_out(KeepBest{best, false, {{"disttrain.metric", "auc"}}});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->warning, "");
    EXPECT_EQ(answer->exported, best);
    ASSERT_EQ(answer->kept->size(), 2u);
    EXPECT_EQ(answer->kept->front().path, first);
    auto exported = checkpoint::Weights::open(files_, "/c/small/best.safetensors");
    ASSERT_TRUE(exported) << exported.error().message;
    auto original = checkpoint::Weights::open(files_, best);
    ASSERT_TRUE(original) << original.error().message;
    for (const checkpoint::Weights::Variable& variable : original->variables()) {
      std::vector<float> values(variable.elements);
      std::vector<float> expected(variable.elements);
      ASSERT_TRUE(exported->read(*exported->find(variable.name), 0, values));
      ASSERT_TRUE(original->read(*original->find(variable.name), 0, expected));
      EXPECT_EQ(values, expected) << variable.name;
    }
  }
  const std::vector<std::byte>& content = files_.content("/c/small/best.safetensors");
  const std::string text(reinterpret_cast<const char*>(content.data()), content.size());
  EXPECT_NE(text.find("\"disttrain.metric\":\"auc\""), std::string::npos);
}

// While the job's file system is away, an empty folder may be in its place, or none. The chief then would take the
// checkpoints for removed ones, and finish the job although none is evaluated.
TEST_F(FolderWorkTest, AFolderThatIsAwayIsNotListed) {
  const std::string first = saved(5);
  JobFolder folder(files_, [] { return std::int64_t{0}; });
  ASSERT_TRUE(folder.carry_out(OpenFolder{"/c", "small", false, 7, first}));
  ASSERT_TRUE(files_.rename("/c/small", "/c/away"));
  auto answer = folder.carry_out(KeepBest{});
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->kept) << "no folder is there";
  ASSERT_TRUE(files_.make_directory("/c/small"));
  answer = folder.carry_out(KeepBest{});
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->kept) << "an empty mount point is there";
  ASSERT_TRUE(checkpoint::remove_all(files_, "/c/small"));
  ASSERT_TRUE(files_.rename("/c/away", "/c/small"));
  answer = folder.carry_out(KeepBest{});
  ASSERT_TRUE(answer && answer->kept);
  EXPECT_EQ(answer->kept->size(), 1u) << "the folder is back";
}

TEST_F(FolderWorkTest, AFailedExportLeavesTheOneBefore) {
  const std::string first = saved(5);
  JobFolder folder(files_, [] { return std::int64_t{0}; });
  ASSERT_TRUE(folder.carry_out(OpenFolder{"/c", "small", false, 7, first}));
  ASSERT_TRUE(folder.carry_out(KeepBest{first, false, {}}));
  const std::vector<std::byte> before = files_.content("/c/small/best.safetensors");
  let_nothing_be_written(ErrorCode::kFailed);
  const auto answer = folder.carry_out(KeepBest{first, false, {}});
  ASSERT_TRUE(answer);
  EXPECT_NE(answer->warning, "");
  EXPECT_EQ(answer->exported, "");
  EXPECT_EQ(files_.content("/c/small/best.safetensors"), before);
}

TEST_F(FolderWorkTest, TheFolderKeepsWhatEvaluationsFound) {
  const std::string first = saved(5);
  const std::string second = saved(9);
  KeptEvaluations kept{"auc", true, {}};
  kept.found.evaluated = {{Generation(1), Step(5), first}, {Generation(1), Step(9), second}};
  kept.found.best = {{{Generation(1), Step(5), first}, 0.75}};
  kept.found.best_value = 0.75;
  kept.found.best_step = Step(5);
  kept.found.counted = Step(9);
  kept.found.without_progress = 1;
  {
    JobFolder folder(files_, [] { return std::int64_t{0}; });
    const auto opened = folder.carry_out(OpenFolder{"/c", "small", false, 7, second});
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_FALSE(opened->evaluations);
    EXPECT_EQ(opened->warning, "");
    const auto answer = folder.carry_out(KeepBest{first, false, {}, kept});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->warning, "");
  }
  kept.found.exported = first;
  const auto again = open(second);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->evaluations, kept);

  for (const std::string& damaged : {std::string("{"), std::string("{}"), std::string(1 << 21, ' ')}) {
    files_.content("/c/small/evaluations.json")
        .assign(reinterpret_cast<const std::byte*>(damaged.data()),
                reinterpret_cast<const std::byte*>(damaged.data()) + damaged.size());
    const auto anew = open("");
    ASSERT_TRUE(anew) << anew.error().message;
    EXPECT_FALSE(anew->evaluations);
    EXPECT_NE(anew->warning.find("/c/small/evaluations.json"), std::string::npos) << anew->warning;
  }
}

// Otherwise the next job's best checkpoint, which may be worse, would take the place of best.safetensors.
TEST_F(FolderWorkTest, BestCheckpointIsKnownWithoutTheFileOfEvaluations) {
  const std::string best = saved(5);
  const std::string newest = saved(9);
  KeptEvaluations kept;
  kept.metric = "loss";
  {
    JobFolder folder(files_, [] { return std::int64_t{0}; });
    ASSERT_TRUE(folder.carry_out(OpenFolder{"/c", "small", false, 7, newest}));
    const auto answer = folder.carry_out(KeepBest{best,
                                                  false,
                                                  {{"disttrain.checkpoint", best},
                                                   {"disttrain.metric", "loss"},
                                                   {"disttrain.better", "lower"},
                                                   {"disttrain.value", "0.25"}},
                                                  kept});
    ASSERT_TRUE(answer) << answer.error().message;
  }
  const auto check = [&](const std::string& how) {
    const auto known = open(newest);
    ASSERT_TRUE(known) << how << ": " << known.error().message;
    EXPECT_EQ(known->warning, "") << how << ": a restarted chief knows them from its journal";
    const auto opened = open("");
    ASSERT_TRUE(opened) << how << ": " << opened.error().message;
    ASSERT_TRUE(opened->evaluations) << how << ": " << opened->warning;
    ASSERT_EQ(opened->evaluations->found.best.size(), 1u) << how;
    EXPECT_EQ(opened->evaluations->found.best.front().checkpoint.path, best) << how;
    EXPECT_EQ(opened->evaluations->found.best_value, 0.25) << how;
    EXPECT_EQ(opened->evaluations->found.exported, best) << how;
    EXPECT_NE(opened->warning.find("knows only the best one"), std::string::npos) << opened->warning;
  };
  files_.content("/c/small/evaluations.json").resize(3);
  check("damaged");
  ASSERT_TRUE(files_.remove_file("/c/small/evaluations.json"));
  check("gone");
}

TEST_F(FolderWorkTest, EvaluationsThatCantBeReadArentLost) {
  const std::string newest = saved(9);
  files_.fault = [](checkpoint::MemoryFiles::Op op, const std::string& path) -> std::optional<Error> {
    if (op == checkpoint::MemoryFiles::Op::kOpen && path.ends_with("evaluations.json"))
      return Error{ErrorCode::kNoPermission, path + ": permission denied"};
    return std::nullopt;
  };
  {
    JobFolder folder(files_, [] { return std::int64_t{0}; });
    const auto opened = folder.carry_out(OpenFolder{"/c", "small", false, 7, ""});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kNoPermission);
  }
  EXPECT_TRUE(open(newest)) << "a restarted chief knows them";
}

}  // namespace
}  // namespace disttrain::chiefd
