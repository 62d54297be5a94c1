#include "chiefd/folder_work.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "common/checkpoint/kept_columns.h"
#include "common/checkpoint/weights.h"
#include "common/program/kept_program.h"
#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"

namespace disttrain::chiefd {
namespace {

// A job "small" whose checkpoints are in /c. Each call of open() plays a newly started chief.
class FolderWorkTest : public testing::Test {
 protected:
  FolderWorkTest() {
    EXPECT_TRUE(files_.make_directory("/c"));
    EXPECT_TRUE(files_.make_directory("/away"));
  }
  std::string saved(std::uint64_t step) {
    EXPECT_TRUE(files_.make_directory("/c/small"));
    const auto path = checkpoint::save(files_, "/c/small", layout_, 1, step, 1, step);
    EXPECT_TRUE(path) << path.error().message;
    return path.value_or("");
  }
  Result<FolderAnswer> open(const std::string& committed) {
    return JobFolder(files_, [] { return std::int64_t{0}; }).carry_out(OpenFolder{"/c", "small", false, 7, committed});
  }

  // Makes every write fail, as on a file system that was mounted read-only or after the folder's owner has changed.
  // Other values of `error` stand for other faults, such as a full disk.
  void let_nothing_be_written(ErrorCode error = ErrorCode::kNoPermission) {
    files_.fault = [error](checkpoint::MemoryFiles::Op op, const std::string& path) -> std::optional<Error> {
      using Op = checkpoint::MemoryFiles::Op;
      if (op == Op::kOpen || (op == Op::kMakeDirectory && path == "/c/small")) return std::nullopt;
      return Error{error, "can't write " + path};
    };
  }

  checkpoint::MemoryFiles files_;
  const Layout layout_ = checkpoint::layout_of(checkpoint::small_model(), 2, 5);
};

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

// ---- no checkpoint can be used: `broken` lists those that are damaged or gone

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

// ---- a folder that has become read-only

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

// ---- the job's step program

class ProgramInFolderTest : public FolderWorkTest {
 protected:
  ProgramInFolderTest() : folder_(files_, [] { return std::int64_t{0}; }) {
    std::ifstream file(std::string(DISTTRAIN_PROGRAMS) + "/batch_norm.pt", std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    EXPECT_TRUE(checkpoint::write_text(files_, kProgram, content));
    model_ = program::Package::open(files_, kProgram)->sidecar().model;
  }

  Result<FolderAnswer> open_with(const std::string& program) {
    return folder_.carry_out(OpenFolder{"/c", "small", false, 7, "", program});
  }
  // Takes a checkpoint as the ps tasks and the chief do.
  Result<FolderAnswer> commit(const ModelSpec& model) {
    CommitAttempt work;
    work.generation = Generation(1);
    work.attempt = ++attempt_;
    work.layout = checkpoint::layout_of(model, 1, kMaxBucketWords);
    const auto begun = folder_.carry_out(BeginAttempt{work.generation, work.attempt});
    if (!begun) return begun;
    const auto held = checkpoint::held_by(work.layout, 0, 1, 0);
    const auto file = checkpoint::write_shard(files_, begun->path, work.layout, ShardId(0), held.content(), {});
    ShardWritten written;
    written.file = *file;
    written.entry.version = Step(attempt_);
    written.entry.words = held.parameters.size();
    written.pacer.emplace();
    written.pacer->global_step = Step(attempt_);
    work.shards = {written};
    work.columns = columns_;
    return folder_.carry_out(work);
  }

  static constexpr const char* kProgram = "/p.pt";
  JobFolder folder_;
  ModelSpec model_;
  std::uint64_t attempt_ = 0;
  std::string columns_;  // of the job's data
};

TEST_F(ProgramInFolderTest, CheckpointsKeepTheColumnsAndRefuseJobsWithOthers) {
  const auto with_words = [](const std::vector<std::string>& words) {
    return checkpoint::encode_columns({{.name = "country", .words = words}});
  };
  ASSERT_TRUE(open_with(""));
  ASSERT_TRUE(commit(model_));
  // A checkpoint that keeps no columns goes with every job.
  EXPECT_TRUE(folder_.carry_out(FindNewest{7, "", with_words({"de"})}));
  columns_ = with_words({"de", "fr"});
  const auto committed = commit(model_);
  ASSERT_TRUE(committed) << committed.error().message;
  const auto kept = checkpoint::kept_columns(files_, *checkpoint::open_checkpoint(files_, committed->path));
  ASSERT_TRUE(kept.has_value() && kept->has_value());
  EXPECT_EQ((**kept)[0].words, (std::vector<std::string>{"de", "fr"}));

  for (const std::string& same : {columns_, std::string()}) EXPECT_TRUE(folder_.carry_out(FindNewest{7, "", same}));
  const auto other = folder_.carry_out(FindNewest{7, "", with_words({"de", "it"})});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kConfig);
  EXPECT_NE(other.error().message.find("data.columns.country"), std::string::npos) << other.error().message;
}

TEST_F(ProgramInFolderTest, DamagedCheckpointIsToldThoughTheOneBeforeCantBeUsedEither) {
  const auto with_words = [](const std::vector<std::string>& words) {
    return checkpoint::encode_columns({{.name = "country", .words = words}});
  };
  ASSERT_TRUE(open_with(""));
  columns_ = with_words({"de", "fr"});
  ASSERT_TRUE(commit(model_));
  const auto newest = commit(model_);
  ASSERT_TRUE(newest) << newest.error().message;
  files_.content(newest->path + "/" + checkpoint::kManifestName).resize(3);
  EXPECT_FALSE(folder_.carry_out(FindNewest{7, "", with_words({"de", "it"})}));
  const auto found = folder_.carry_out(FindNewest{7, "", columns_});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->broken.size(), 1u);
  EXPECT_NE(found->broken[0].find(newest->path), std::string::npos) << found->broken[0];
}

TEST_F(ProgramInFolderTest, AJobThatGoesOnWithDamagedColumnsIsWarned) {
  columns_ = checkpoint::encode_columns({{.name = "country", .words = {"de", "fr"}}});
  ASSERT_TRUE(open_with(""));
  const auto committed = commit(model_);
  ASSERT_TRUE(committed) << committed.error().message;
  const auto warning = [this] {
    const auto found = folder_.carry_out(FindNewest{7, "", columns_});
    EXPECT_TRUE(found) << found.error().message;
    return found && found->newest ? found->warning : "no checkpoint";
  };
  EXPECT_EQ(warning(), "");
  const std::string path = committed->path + "/" + checkpoint::kColumnsName;
  const std::string content = *checkpoint::read_text(files_, path, 1 << 20);
  ASSERT_TRUE(files_.remove_file(path));
  ASSERT_TRUE(checkpoint::write_text(files_, path, std::string(content.size(), 'x')));
  for (const char* part : {"the job goes on from ", "data.columns", "columns.cbor", "damaged", "; make sure that"})
    EXPECT_NE(warning().find(part), std::string::npos) << warning();
  EXPECT_EQ(folder_.carry_out(FindNewest{7, "", ""})->warning, "") << "a job without [data.columns]";
}

TEST_F(ProgramInFolderTest, FolderThatWasMadeAgainIsTheJobsAfterItsNextCheckpoint) {
  ASSERT_TRUE(open_with(""));
  ASSERT_TRUE(commit(model_)->kept);
  ASSERT_TRUE(checkpoint::remove_all(files_, "/c/small"));
  ASSERT_TRUE(files_.make_directory("/c/small"));
  const auto committed = commit(model_);
  ASSERT_TRUE(committed) << committed.error().message;
  ASSERT_TRUE(committed->kept) << "the evaluators need the list";
  EXPECT_EQ(committed->kept->size(), 1u);
  EXPECT_TRUE(checkpoint::check_token(files_, "/c/small", 7));
  EXPECT_EQ(committed->warning,
            "/c/small was removed and made again while the job ran, so its earlier checkpoints are gone");
  EXPECT_EQ(commit(model_)->warning, "") << "said once";
}

TEST_F(ProgramInFolderTest, FolderWithTheTokenOfAnotherChiefIsNotMarkedAgain) {
  ASSERT_TRUE(open_with(""));
  ASSERT_TRUE(checkpoint::write_token(files_, "/c/small", 8));
  const auto committed = commit(model_);
  ASSERT_TRUE(committed) << committed.error().message;
  EXPECT_FALSE(committed->kept);
  EXPECT_TRUE(checkpoint::check_token(files_, "/c/small", 8));
}

TEST_F(ProgramInFolderTest, CheckpointsKeepTheProgramThatTheJobBeganWith) {
  const auto opened = open_with(kProgram);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->program_warning, "");
  ASSERT_TRUE(files_.remove_file(kProgram));
  for (int i = 0; i < 2; ++i) {
    const auto committed = commit(model_);
    ASSERT_TRUE(committed) << committed.error().message;
    EXPECT_EQ(committed->program_warning, "");
    const auto kept = program::kept_program(files_, *checkpoint::open_checkpoint(files_, committed->path));
    ASSERT_TRUE(kept.has_value()) << kept.error().message;
    ASSERT_TRUE(*kept);
    EXPECT_EQ((**kept).model, model_);
  }
}

TEST_F(ProgramInFolderTest, ProgramThatTheChiefCannotReadIsAWarning) {
  const auto opened = open_with("/gone.pt");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_NE(opened->program_warning.find("/gone.pt"), std::string::npos) << opened->program_warning;
  const auto committed = commit(model_);
  ASSERT_TRUE(committed) << committed.error().message;
  EXPECT_EQ(committed->program_warning, "") << "said once";
  EXPECT_FALSE(*program::kept_program(files_, *checkpoint::open_checkpoint(files_, committed->path)));
}

TEST_F(ProgramInFolderTest, ProgramOfOtherVariablesThanTheWorkersHaveIsNotKept) {
  ASSERT_TRUE(open_with(kProgram));
  const auto committed = commit(checkpoint::small_model());
  ASSERT_TRUE(committed) << committed.error().message;
  EXPECT_NE(committed->program_warning.find("has other variables on the chief's host"), std::string::npos);
  EXPECT_EQ(commit(checkpoint::small_model())->program_warning, "");
}

}  // namespace
}  // namespace disttrain::chiefd
