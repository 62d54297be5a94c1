// An evaluation that isn't wanted any more ends soon: while the checkpoint is read, and while a batch is computed. An
// evaluation with other labels or columns than those of the training is refused.
#include "workerd/evaluator/checkpoint_evaluation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "chiefd/core/placement.h"
#include "common/checkpoint/kept_csv.h"
#include "engine/fake_engine.h"
#include "tests/common/checkpoint/small_job.h"
#include "tests/input/input_files.h"
#include "workerd/predict/single_computation.h"

namespace disttrain::workerd {
namespace {

const FakeModel kModel{.variable_elements = {6}, .input_elements = 2, .classes = 3};

// A computation of this engine doesn't end by itself, as a batch of a trainer that takes an hour.
class EndlessEngine final : public Engine {
 public:
  explicit EndlessEngine(int& aborts) : aborts_(aborts) {}

  const ModelSpec& describe() const override { return engine_->describe(); }
  Status takes(Program, std::uint64_t) const override { return {}; }
  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    return engine_->open(layout, parameters, gradients);
  }
  Result<std::vector<float>> initial_values() override { return engine_->initial_values(); }
  void start(const EngineInput&, EngineSink&) override {}
  void abort() override { ++aborts_; }

 private:
  const std::unique_ptr<Engine> engine_ = make_fake_engine(kModel);
  int& aborts_;
};

class CheckpointEvaluationTest : public testing::Test {
 protected:
  CheckpointEvaluationTest() {
    config_.job.name = "test";
    config_.model.program = "/step.pt";
    config_.data.format = DataFormat::kNpy;
    config_.data.path = config_.evaluate.path = folder_.path();
    config_.data.files = config_.evaluate.files = "x.npy";
    config_.data.labels = config_.evaluate.labels = "y.npy";
    config_.train.batch_size = config_.evaluate.batch_size = 2;
    config_.train.epochs = 1;
    folder_.write("x.npy", input::npy("<f4", "(4, 2)", std::vector<float>(8, 1.0F)));
    folder_.write("y.npy", input::npy("<i8", "(4,)", std::vector<std::int64_t>(4, 2)));
    std::filesystem::create_directory(folder_ / "job");
    save(10, {});
  }

  void save(std::uint64_t step, const checkpoint::AddFiles& add_files) {
    const Result<Layout> layout = chiefd::place(describe_fake(kModel), Placement::kBalanced, 1);
    EXPECT_TRUE(layout) << layout.error().message;
    const Result<std::string> saved =
        checkpoint::save(files_, folder_ / "job", *layout, 1, step, 1, step, false, add_files);
    EXPECT_TRUE(saved) << saved.error().message;
    checkpoint_ = saved.value_or("");
  }

  // Saves a checkpoint that keeps these labels and this header.
  void save_with(std::uint64_t step, const checkpoint::KeptCsv& csv) {
    save(step, [this, &csv](const std::string& attempt, checkpoint::Manifest& manifest) -> Status {
      Result<checkpoint::FileEntry> entry = checkpoint::keep_columns(files_, attempt, checkpoint::encode_csv(csv));
      if (!entry) return tl::unexpected(entry.error());
      manifest.files.push_back(std::move(*entry));
      return files_.sync_directory(attempt);
    });
  }

  std::unique_ptr<CheckpointEvaluation> make(bool is_endless) {
    auto made = try_make(is_endless);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  Result<std::unique_ptr<CheckpointEvaluation>> try_make(bool is_endless) {
    const EngineFactory engines = [this, is_endless](const JobConfig&, const std::vector<ColumnSpec>&, Arena&,
                                                     const EngineWorld&) -> Result<MadeEngine> {
      if (is_endless) return MadeEngine{std::make_unique<EndlessEngine>(aborts_), 0, 0};
      return MadeEngine{make_fake_engine(kModel), 0, 0};
    };
    return CheckpointEvaluation::make(JobId(1), config_, checkpoint_, engines, world_);
  }

  input::Folder folder_;
  JobConfig config_;
  checkpoint::DiskFiles files_;
  std::string checkpoint_;
  int aborts_ = 0;
  asio::io_context loop_;
  const EngineWorld world_{
      .loop = loop_, .is_cancelled = [] { return false; }, .on_line = {}, .on_checkpoint = {}, .worker_count = {}};
};

constexpr auto kNever = [] { return false; };

TEST_F(CheckpointEvaluationTest, ReadingCallsIsCancelledAndEndsWithIt) {
  const auto evaluation = make(false);
  ASSERT_NE(evaluation, nullptr);
  int calls = 0;
  const auto counted = [&calls] { return ++calls < 0; };
  const Result<Evaluated> evaluated = evaluation->run(checkpoint_, counted, kNever);
  ASSERT_TRUE(evaluated) << evaluated.error().message;
  EXPECT_EQ(evaluated->step, Step(10));
  EXPECT_EQ(evaluated->examples, 4u);
  constexpr int kBatches = 2;
  const int reads = calls - kBatches;
  EXPECT_GE(reads, 3) << "the reads of the manifest and of a shard count as work, too";
  for (int last = 1; last <= reads; ++last) {
    int left = last;
    const Result<Evaluated> cancelled = evaluation->run(
        checkpoint_, [&left] { return --left <= 0; }, kNever);
    ASSERT_FALSE(cancelled) << last;
    EXPECT_EQ(cancelled.error().code, ErrorCode::kTemporary) << cancelled.error().message;
    EXPECT_NE(cancelled.error().message.find(checkpoint_), std::string::npos) << cancelled.error().message;
  }
}

TEST_F(CheckpointEvaluationTest, BatchEndsWhenTheJobIsReleased) {
  const auto evaluation = make(true);
  ASSERT_NE(evaluation, nullptr);
  int asked = 0;
  const Result<Evaluated> evaluated = evaluation->run(checkpoint_, kNever, [&asked] { return ++asked == 2; });
  ASSERT_FALSE(evaluated);
  EXPECT_EQ(evaluated.error().code, ErrorCode::kTemporary);
  EXPECT_EQ(aborts_, 1);
}

// The training files of the evaluator's host may be other ones than those of the workers.
TEST_F(CheckpointEvaluationTest, OtherLabelsOrColumnsOfCsvFilesThanTheCheckpointKeepsAreRefused) {
  config_.data.format = DataFormat::kCsv;
  config_.data.files = "train.csv";
  config_.evaluate.files = "test.csv";
  config_.data.labels = config_.evaluate.labels = "";
  folder_.write("train.csv", "a,b,kind\n1,2,dog\n3,4,cat\n5,6,bird\n");
  folder_.write("test.csv", "a,b,kind\n7,8,dog\n");
  save_with(20, {.labels = {"bird", "cat", "dog"}, .header = {"a", "b", "kind"}});
  const auto evaluation = make(false);
  ASSERT_NE(evaluation, nullptr);
  const Result<Evaluated> evaluated = evaluation->run(checkpoint_, kNever, kNever);
  ASSERT_TRUE(evaluated) << evaluated.error().message;
  EXPECT_EQ(evaluated->loss, 7 + 2) << "the fake engine adds the first input and the label";
  const auto expect_refused = [this](const std::string& what) {
    const auto made = try_make(false);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kConfig);
    EXPECT_EQ(made.error().message, checkpoint_ +
                                        " was trained with other labels or columns than the csv files of the training "
                                        "set have on this host: " +
                                        what + ": restore the files");
  };
  save_with(30, {.labels = {"Bird", "cat", "dog"}, .header = {"a", "b", "kind"}});
  expect_refused("label 0 was 'Bird' and is 'bird' now");
  save_with(40, {.labels = {"bird", "cat", "dog"}, .header = {"b", "a", "kind"}});
  expect_refused("the header's column 1 was 'b' and is 'a' now");
}

}  // namespace
}  // namespace disttrain::workerd
