// A job's data and model: the sizes of the batches of training and evaluation.
#include "workerd/prepared_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "engine/fake_engine.h"
#include "input/columns.h"
#include "tests/input/input_files.h"
#include "workerd/evaluation_run.h"

namespace disttrain::workerd {
namespace {

using testing::HasSubstr;

// An engine that computes batches of one size only, as a program that was exported with dynamic_batch=False.
class FixedEngine final : public Engine {
 public:
  FixedEngine(std::unique_ptr<Engine> engine, std::uint64_t examples)
      : engine_(std::move(engine)), examples_(examples) {}

  const ModelSpec& describe() const override { return engine_->describe(); }
  Status takes(Program, std::uint64_t examples) const override {
    if (examples == examples_) return {};
    return fail(ErrorCode::kConfig, "step.pt takes batches of exactly " + std::to_string(examples_) + " records");
  }
  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    return engine_->open(layout, parameters, gradients);
  }
  Result<std::vector<float>> initial_values() override { return engine_->initial_values(); }
  void start(const EngineInput& input, EngineSink& sink) override { engine_->start(input, sink); }
  void abort() override { engine_->abort(); }

 private:
  const std::unique_ptr<Engine> engine_;
  const std::uint64_t examples_;
};

class PreparedJobTest : public testing::Test {
 protected:
  PreparedJobTest() {
    config_.job.name = "test";
    config_.model.program = "/step.pt";
    config_.data.format = DataFormat::kNpy;
    config_.data.path = folder_.path();
    config_.data.files = "x.npy";
    config_.data.labels = "y.npy";
    config_.evaluate.path = folder_.path();
    config_.train.batch_size = 8;
    config_.train.epochs = 1;
  }

  // Writes records with the inputs (i, -i) and the label i modulo 3.
  void write_records(std::uint64_t records, const std::string& prefix = "") {
    std::vector<float> inputs;
    std::vector<std::int64_t> labels;
    for (std::uint64_t i = 0; i < records; ++i) {
      inputs.insert(inputs.end(), {static_cast<float>(i), -static_cast<float>(i)});
      labels.push_back(static_cast<std::int64_t>(i % 3));
    }
    const std::string count = std::to_string(records);
    folder_.write(prefix + "x.npy", input::npy("<f4", "(" + count + ", 2)", inputs));
    folder_.write(prefix + "y.npy", input::npy("<i8", "(" + count + ",)", labels));
  }

  void evaluate_records(std::uint64_t records) {
    write_records(records, "test-");
    config_.evaluate.files = "test-x.npy";
    config_.evaluate.labels = "test-y.npy";
  }

  static ColumnSection column(const std::string& name, ColumnKind kind) {
    ColumnSection section;
    section.name = name;
    section.kind = kind;
    if (kind == ColumnKind::kNumeric) section.normalise = Normalise::kStandard;
    return section;
  }

  Result<std::unique_ptr<PreparedJob>> prepare() {
    Result<std::unique_ptr<PreparedJob>> prepared = prepare_job(JobId(1), config_, make_, world_, [](ErrorCode) {});
    if (!prepared) return prepared;
    if (Status loaded = load_evaluation(**prepared); !loaded) return tl::unexpected(loaded.error());
    return prepared;
  }

  std::unique_ptr<Engine> engine() {
    auto engine = make_fake_engine(FakeModel{.variable_elements = {6}, .input_elements = inputs_, .classes = 3});
    return fixed_ == 0 ? std::move(engine) : std::make_unique<FixedEngine>(std::move(engine), fixed_);
  }

  void expect_refused(const std::string& part) {
    const auto prepared = prepare();
    ASSERT_FALSE(prepared.has_value());
    EXPECT_EQ(prepared.error().code, ErrorCode::kConfig);
    EXPECT_THAT(prepared.error().message, HasSubstr(part));
  }

  input::Folder folder_;
  JobConfig config_;
  std::uint64_t fixed_ = 0;  // the size of every batch; 0: any
  std::uint64_t inputs_ = 2;
  asio::io_context loop_;
  const EngineWorld world_{
      .loop = loop_, .is_cancelled = [] { return false; }, .on_line = {}, .on_checkpoint = {}, .worker_count = {}};
  const EngineFactory make_ = [this](const JobConfig&, const std::vector<ColumnSpec>&, Arena&,
                                     const EngineWorld&) -> Result<MadeEngine> {
    return MadeEngine{engine(), 0, 0};
  };
};

TEST_F(PreparedJobTest, NoticeOfUnknownCategoriesIsTakenOnce) {
  config_.data.format = DataFormat::kCsv;
  config_.data.columns = {column("x", ColumnKind::kNumeric), column("y", ColumnKind::kNumeric),
                          column("site", ColumnKind::kCategory), column("k", ColumnKind::kLabel)};
  config_.data.files = "train.csv";
  config_.data.labels = "";
  config_.evaluate.files = "test.csv";
  folder_.write("train.csv", "x,y,site,k\n1,5,roof,b\n3,9,yard,a\n");
  folder_.write("test.csv", "x,y,site,k\n2,11,pond,b\n1,5,yard,a\n");
  const auto prepared = prepare();
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  EXPECT_THAT((*prepared)->take_notice_of_unknown(), HasSubstr("(site: 1 record)"));
  EXPECT_EQ((*prepared)->take_notice_of_unknown(), "");
  EXPECT_THAT((*prepared)->notice_of_unknown(), HasSubstr("(site: 1 record)"));
}

TEST_F(PreparedJobTest, EvaluatorReadsNoTrainingFiles) {
  config_.data.format = DataFormat::kCsv;
  config_.data.columns = {column("x", ColumnKind::kNumeric), column("y", ColumnKind::kNumeric),
                          column("k", ColumnKind::kLabel)};
  config_.data.files = "train.csv";
  config_.data.labels = "";
  config_.evaluate.files = "test.csv";
  folder_.write("train.csv", "x,y,k\n1,5,b\n3,9,a\n");
  folder_.write("test.csv", "x,y,k\n2,11,b\n");
  const auto whole = prepare();
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  const std::shared_ptr<const input::FittedColumns> fitted = (*whole)->training->fitted_columns();
  std::filesystem::remove(folder_.path() + "/train.csv");
  const auto prepared = prepare_evaluation(JobId(1), config_, fitted, make_, world_);
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  EXPECT_EQ((*prepared)->training, nullptr);
  EXPECT_THAT(input::gather<float>(*(*prepared)->evaluation, {0}, 0, DType::kFloat32, 2), testing::ElementsAre(0, 2));
  EXPECT_THAT(input::gather<std::int64_t>(*(*prepared)->evaluation, {0}, 1, DType::kInt64, 1), testing::ElementsAre(1));

  config_.data.columns.erase(config_.data.columns.begin());  // the model takes two numbers
  auto fewer = *fitted;
  fewer.columns.erase(fewer.columns.begin());
  const auto misfit =
      prepare_evaluation(JobId(1), config_, std::make_shared<const input::FittedColumns>(fewer), make_, world_);
  ASSERT_FALSE(misfit.has_value());
  EXPECT_THAT(misfit.error().message, HasSubstr("the records of evaluate.files have 1 values each"));
}

TEST_F(PreparedJobTest, TestSetOfCsvFilesHasTheColumnsOfTheTrainingSet) {
  config_.data.format = DataFormat::kCsv;
  config_.data.files = "train.csv";
  config_.data.labels = "";
  config_.evaluate.files = "test.csv";
  folder_.write("train.csv", "width,height,kind\n1,5,0\n3,9,2\n");
  folder_.write("test.csv", "width,height,kind\n2,11,1\n");
  const auto prepared = prepare();
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  folder_.write("test.csv", "height,width,kind\n11,2,1\n");
  const auto refused = prepare();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
  EXPECT_THAT(refused.error().message,
              HasSubstr("test.csv:1: the header's column 1 is 'height', expected 'width' as in the training set"));
}

// The model takes flat records, so it can't tell images whose channels come last from those whose channels come first.
TEST_F(PreparedJobTest, TestSetHasTheShapeOfTheTrainingSet) {
  inputs_ = 24;
  const std::vector<float> values(48);
  folder_.write("x.npy", input::npy("<f4", "(2, 2, 4, 3)", values));
  folder_.write("y.npy", input::npy<std::int64_t>("<i8", "(2,)", {0, 1}));
  evaluate_records(2);
  folder_.write("test-x.npy", input::npy("<f4", "(2, 2, 12)", values));
  const auto prepared = prepare();
  EXPECT_TRUE(prepared.has_value()) << prepared.error().message;
  folder_.write("test-x.npy", input::npy("<f4", "(2, 3, 2, 4)", values));
  const auto refused = prepare();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
  EXPECT_THAT(refused.error().message,
              HasSubstr("test-x.npy: its records have the shape [3, 2, 4], expected [2, 4, 3] as in the training set"));
}

TEST_F(PreparedJobTest, SigmoidOfABuiltinModelTakesLabelsFrom0To1) {
  write_records(6);
  config_.model.loss = Loss::kSigmoidCrossEntropy;
  config_.model.layers = {2, 1};
  EXPECT_TRUE(prepare().has_value()) << "a program has its own loss";
  config_.model.program.clear();
  config_.model.builtin = "mlp";
  const auto refused = prepare();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
  EXPECT_THAT(refused.error().message, HasSubstr("y.npy: value 0 of record 2 is the label 2, expected 0 to 1"));
  write_records(2);
  evaluate_records(3);
  const auto evaluation = prepare();
  ASSERT_FALSE(evaluation.has_value());
  EXPECT_THAT(evaluation.error().message, HasSubstr("test-y.npy: value 0 of record 2 is the label 2"));
}

TEST_F(PreparedJobTest, ProgramOfAnySizeTakesAllRecords) {
  write_records(21);
  evaluate_records(13);
  const auto prepared = prepare();
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  EXPECT_EQ((*prepared)->evaluation->records(), 13U);
}

TEST_F(PreparedJobTest, ProgramOfAFixedSizeTakesRecordsThatItsSizeDivides) {
  fixed_ = 8;
  write_records(24);
  evaluate_records(16);
  const auto prepared = prepare();
  EXPECT_TRUE(prepared.has_value()) << prepared.error().message;
}

TEST_F(PreparedJobTest, BatchOfAnotherSizeIsRefused) {
  fixed_ = 16;
  write_records(32);
  expect_refused("a batch has 8 records (32 training records in batches of 8): step.pt takes batches of exactly 16");
}

TEST_F(PreparedJobTest, SmallerLastBatchOfAnEpochIsRefused) {
  fixed_ = 8;
  write_records(27);
  expect_refused("the last batch has 3 records (27 training records in batches of 8): step.pt takes");
  config_.train.steps = 4;
  expect_refused("the last batch has 3 records");
}

TEST_F(PreparedJobTest, LastBatchThatTheJobDoesntReachIsAllowed) {
  fixed_ = 8;
  write_records(27);
  config_.train.steps = 3;
  const auto prepared = prepare();
  EXPECT_TRUE(prepared.has_value()) << prepared.error().message;
}

TEST_F(PreparedJobTest, SmallerLastBatchOfAnEvaluationIsRefusedBeforeTheTraining) {
  fixed_ = 8;
  write_records(24);
  evaluate_records(20);
  expect_refused("the last batch has 4 records (20 evaluation records in batches of 8): step.pt takes");
}

TEST_F(PreparedJobTest, EvaluationBatchOfAnotherSizeIsRefusedBeforeTheTraining) {
  fixed_ = 8;
  write_records(24);
  evaluate_records(16);
  config_.evaluate.batch_size = 4;
  expect_refused("a batch has 4 records (16 evaluation records in batches of 4): step.pt takes");
}

// ---- evaluations ----

// The result of an evaluation in batches of at most `batch_records`, whose sizes are written to `sizes`.
EvaluationDone evaluate(Engine& engine, const input::Dataset& dataset, std::uint64_t batch_records,
                        std::vector<std::uint64_t>& sizes) {
  struct Sink final : EngineSink {
    explicit Sink(EvaluationRun& to) : run(to) {}
    void ready(std::uint64_t, std::uint64_t) override {}
    void finished(const Result<EngineOutput>& output) override { run.add(output.value()); }
    EvaluationRun& run;
  };
  EvaluationRun run(&dataset, engine.describe(), batch_records, 7);
  Sink sink(run);
  sizes.clear();
  while (const std::optional<Batch> batch = run.next().value()) {
    sizes.push_back(batch->examples);
    engine.start(EngineInput{Program::kEvaluate, *batch, {}}, sink);  // the fake engine computes inside start()
  }
  return run.done();
}

// The fake engine computes with small integers, so the results are equal to the bit.
TEST_F(PreparedJobTest, ResultOfAnEvaluationDoesntDependOnTheBatchSize) {
  write_records(23);
  const auto dataset = input::load_dataset(input::training_source(config_.data)).value();
  const auto computes = engine();
  Layout layout;
  layout.model = computes->describe();
  layout.variable_begins = {0};
  std::vector<float> parameters = {1, 0, 0, 0, 0, 0};
  std::vector<float> gradients(parameters.size());
  ASSERT_TRUE(computes->open(layout, parameters, gradients).has_value());
  std::vector<std::uint64_t> sizes;
  const EvaluationDone whole = evaluate(*computes, *dataset, 1000, sizes);
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{23}));
  EXPECT_EQ(whole.examples, 23U);
  EXPECT_EQ(whole.loss_sum, 22 * 23 / 2 + 7 * (0 + 1 + 2) + 0 + 1) << "each record's number, and its label";
  ASSERT_EQ(whole.metrics.size(), 1U);
  EXPECT_DOUBLE_EQ(whole.metrics[0].value, 8.0 / 23.0) << "the labels that are 1";
  EXPECT_EQ(evaluate(*computes, *dataset, 10, sizes).metrics, whole.metrics);
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{10, 10, 3}));
  for (std::uint64_t batch_records = 1; batch_records <= 24; ++batch_records) {
    const EvaluationDone done = evaluate(*computes, *dataset, batch_records, sizes);
    EXPECT_EQ(done.examples, whole.examples) << batch_records;
    EXPECT_EQ(done.loss_sum, whole.loss_sum) << batch_records;
    EXPECT_EQ(done.metrics, whole.metrics) << batch_records;
  }
}

}  // namespace
}  // namespace disttrain::workerd
