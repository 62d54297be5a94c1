// The chief commits checkpoints. With the parameters, they keep the columns of the job's data and its step program.
#include <fstream>
#include <iterator>

#include "common/checkpoint/kept_columns.h"
#include "common/checkpoint/kept_csv.h"
#include "common/program/kept_program.h"
#include "tests/chiefd/folder_work_fixture.h"

namespace disttrain::chiefd {
namespace {

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

TEST_F(ProgramInFolderTest, CheckpointsKeepTheLabelsOfCsvFilesAndRefuseJobsWithOthers) {
  ASSERT_TRUE(open_with(""));
  columns_ = checkpoint::encode_csv({{"Cat", "cat", "dog"}, {"a", "b", "kind"}});
  const auto committed = commit(model_);
  ASSERT_TRUE(committed) << committed.error().message;
  const std::string named = checkpoint::encode_columns({{.name = "country", .words = {"de"}}});
  const std::string without_header = checkpoint::encode_csv({{"Cat", "cat", "dog"}, {}});
  for (const std::string& same : {columns_, without_header, std::string(), named}) {
    const auto found = folder_.carry_out(FindNewest{7, "", same});
    EXPECT_TRUE(found) << found.error().message;
  }
  const auto error = [this](const checkpoint::KeptCsv& csv) {
    const auto found = folder_.carry_out(FindNewest{7, "", checkpoint::encode_csv(csv)});
    EXPECT_FALSE(found);
    if (found) return std::string();
    EXPECT_EQ(found.error().code, ErrorCode::kConfig);
    return found.error().message;
  };
  const std::string trained =
      committed->path + " was trained with other labels or columns than the csv files have now: ";
  const std::string advice = ": restore the files, or begin anew under another job.name";
  EXPECT_EQ(error({{"cat", "dog"}, {"a", "b", "kind"}}), trained + "label 0 was 'Cat' and is 'cat' now" + advice);
  EXPECT_EQ(error({{"Cat", "cat", "dog"}, {"b", "a", "kind"}}),
            trained + "the header's column 1 was 'a' and is 'b' now" + advice);
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
