// Batches from data sets, and whether a model fits a data set.
#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>

#include "common/builtin/builtin.h"
#include "common/random.h"
#include "input/evaluation_batches.h"
#include "input/fits.h"
#include "input/memory_dataset.h"
#include "input/rows.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using Floats = std::vector<float>;
using Labels = std::vector<std::int64_t>;

template <typename T, typename Out>
void expect_gather_equals_naive_twin(std::uint64_t seed) {
  Random random(seed);
  const std::uint64_t elements = 1 + random.below(100);
  const std::uint64_t rows = 1 + random.below(50);
  std::vector<T> values(rows * elements);
  for (T& value : values) value = static_cast<T>(random.below(256));
  std::vector<std::uint64_t> indices(random.below(20));
  for (std::uint64_t& index : indices) index = random.below(rows);
  std::vector<Out> out(indices.size() * elements + 1, Out(99));
  gather_rows(values.data(), {elements, elements}, indices, 0.3, out.data());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    for (std::size_t j = 0; j < elements; ++j) {
      const T value = values[indices[i] * elements + j];
      Out expected = static_cast<Out>(value);
      if (std::is_floating_point_v<Out>) expected = static_cast<Out>(expected * static_cast<Out>(0.3));
      ASSERT_EQ(out[i * elements + j], expected) << "seed " << seed;
    }
  }
  EXPECT_EQ(out.back(), Out(99)) << "written beyond the end";
}

TEST(GatherRows, EqualsItsNaiveTwin) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    expect_gather_equals_naive_twin<std::uint8_t, float>(seed);
    expect_gather_equals_naive_twin<std::uint8_t, std::int64_t>(seed);
    expect_gather_equals_naive_twin<std::int32_t, float>(seed);
    expect_gather_equals_naive_twin<std::int64_t, std::int32_t>(seed);
    expect_gather_equals_naive_twin<std::int64_t, std::int64_t>(seed);
    expect_gather_equals_naive_twin<float, float>(seed);
    expect_gather_equals_naive_twin<double, double>(seed);
  }
}

// Three records of two floats each, labels 2, 0, 1.
MemoryDataset three_labels() {
  Contents contents;
  contents.records = 3;
  contents.inputs = values_of({1, 2, 3, 4, 5, 6}, 2);
  contents.labels = {2, 0, 1};
  return {std::move(contents), 0, 3, 1.0};
}

MemoryDataset two_targets() {
  Contents contents;
  contents.records = 2;
  contents.inputs = values_of({1, 2, 3, 4}, 2);
  contents.targets = values_of({1, 2, 3, 4, 5, 6}, 3);
  return {std::move(contents), 0, 2, 1.0};
}

TEST(Gather, LabelsBecomeTargetsOfWidthOneAsValues) {
  const MemoryDataset dataset = three_labels();
  EXPECT_EQ(gather<float>(dataset, {0, 2}, 1, DType::kFloat32, 1), (Floats{2, 1}));
}

TEST(Gather, LabelsBecomeWiderTargetsAsAOneAtTheirPlace) {
  const MemoryDataset dataset = three_labels();
  EXPECT_EQ(gather<float>(dataset, {0, 1}, 1, DType::kFloat32, 3), (Floats{0, 0, 1, 1, 0, 0}));
}

// Bytes keep their values, without the scale, unless they become floats.
TEST(Gather, BytesBecomeWhatTheColumnAsksFor) {
  Contents contents;
  contents.records = 2;
  contents.inputs = {DType::kUint8, 2, std::make_unique<std::byte[]>(4)};
  for (std::size_t i = 0; i < 4; ++i) contents.inputs.bytes[i] = std::byte(10 * (i + 1));
  contents.labels = {0, 1};
  const MemoryDataset dataset(std::move(contents), 0, 2, 0.5);
  EXPECT_EQ(gather<float>(dataset, {1}, 0, DType::kFloat32, 2), (Floats{15, 20}));
  EXPECT_EQ(gather<double>(dataset, {1}, 0, DType::kFloat64, 2), (std::vector<double>{15, 20}));
  EXPECT_EQ(gather<std::uint8_t>(dataset, {1}, 0, DType::kUint8, 2), (std::vector<std::uint8_t>{30, 40}));
  EXPECT_EQ(gather<std::int32_t>(dataset, {0}, 0, DType::kInt32, 2), (std::vector<std::int32_t>{10, 20}));
  EXPECT_EQ(gather<std::int64_t>(dataset, {0}, 0, DType::kInt64, 2), (std::vector<std::int64_t>{10, 20}));
}

// ---- fits ----

// One record of `values`, and its label 0.
MemoryDataset whole_inputs(const std::vector<std::int64_t>& values) {
  Contents contents;
  contents.records = 1;
  contents.inputs = {DType::kInt64, values.size(), std::make_unique<std::byte[]>(values.size() * 8)};
  std::memcpy(contents.inputs.bytes.get(), values.data(), values.size() * 8);
  contents.labels = {0};
  return {std::move(contents), 0, 1, 1.0};
}

ModelSpec token_model(DType dtype, std::uint64_t limit) {
  ModelSpec model;
  model.columns = {{.name = "tokens", .dtype = dtype, .shape = {2}, .limit = limit}};
  return model;
}

class Fits : public testing::Test {
 protected:
  static ModelSpec mlp(std::vector<std::uint32_t> layers, Loss loss) {
    ModelSection model;
    model.builtin = "mlp";
    model.layers = std::move(layers);
    model.loss = loss;
    return builtin_model(model).value();
  }

  static Status fit(const Dataset& dataset, std::vector<std::uint32_t> layers, Loss loss,
                    const Source& source = Source()) {
    return fits(dataset, mlp(std::move(layers), loss), section(), source);
  }

  static ModelSection section() {
    ModelSection model;
    model.builtin = "mlp";
    return model;
  }

  static void expect_unfit(const Status& status, ErrorCode code, const std::vector<std::string>& parts) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, code);
    for (const std::string& part : parts) {
      EXPECT_NE(status.error().message.find(part), std::string::npos) << part << " isn't in " << status.error().message;
    }
  }

  const MemoryDataset labels_ = three_labels();
  const MemoryDataset targets_ = two_targets();
};

TEST_F(Fits, ModelOfTheSameSizes) {
  EXPECT_TRUE(fit(labels_, {2, 5, 3}, Loss::kSoftmaxCrossEntropy));
  EXPECT_TRUE(fit(labels_, {2, 4}, Loss::kMse));
  EXPECT_TRUE(fit(labels_, {2, 1}, Loss::kMse));
  EXPECT_TRUE(fit(targets_, {2, 3}, Loss::kMse));
  Contents soft;
  soft.records = 2;
  soft.inputs = values_of({1, 2, 3, 4}, 2);
  soft.targets = values_of({0, 0.5F, 1, 0.25F, 0, 1}, 3);
  EXPECT_TRUE(fit(MemoryDataset(std::move(soft), 0, 2, 1.0), {2, 3}, Loss::kSigmoidCrossEntropy));
}

TEST_F(Fits, OtherInputsAreNamedWithBothNumbers) {
  expect_unfit(fit(labels_, {784, 3}, Loss::kSoftmaxCrossEntropy), ErrorCode::kConfig,
               {"2 values", "784", "model.layers", "data.files"});
}

TEST_F(Fits, LabelOutOfRangeIsNamedWithBothNumbers) {
  expect_unfit(fit(labels_, {2, 2}, Loss::kSoftmaxCrossEntropy), ErrorCode::kData,
               {"up to 2", "2 outputs", "0 to 1", "model.layers"});
  expect_unfit(fit(labels_, {2, 2}, Loss::kMse), ErrorCode::kData, {"up to 2"});
}

TEST_F(Fits, ValuesAreNotClasses) {
  expect_unfit(fit(targets_, {2, 3}, Loss::kSoftmaxCrossEntropy), ErrorCode::kConfig, {"3 per record", "model.loss"});
}

TEST_F(Fits, NoKeyChoosesTheLabelsOfACsvFile) {
  Source csv;
  csv.format = DataFormat::kCsv;
  expect_unfit(fit(labels_, {2, 2}, Loss::kMse, csv), ErrorCode::kData, {"the last column of data.files"});
}

TEST_F(Fits, TargetsOfAnotherLengthAreNamedWithBothNumbers) {
  expect_unfit(fit(targets_, {2, 4}, Loss::kMse), ErrorCode::kConfig, {"3 values", "gives 4", "model.layers"});
}

TEST_F(Fits, TypesThatDontConvertAreNamed) {
  ModelSpec tokens;
  tokens.columns = {{.name = "tokens", .dtype = DType::kInt64, .shape = {2}}};
  expect_unfit(fits(labels_, tokens, ModelSection(), Source()), ErrorCode::kConfig, {"float32", "\"tokens\"", "int64"});
}

TEST_F(Fits, ColumnOfAnotherSizeIsNamed) {
  const Status unfit = fits(whole_inputs({1, 2, 3}), token_model(DType::kInt64, 0), ModelSection(), Source());
  expect_unfit(unfit, ErrorCode::kConfig, {"have 3 values each", "the model's column \"tokens\" takes 2"});
}

TEST_F(Fits, IntegersFitWithinTheLimitAndTheType) {
  const auto fit_tokens = [](const std::vector<std::int64_t>& values, DType dtype, std::uint64_t limit) {
    return fits(whole_inputs(values), token_model(dtype, limit), ModelSection(), Source());
  };
  EXPECT_TRUE(fit_tokens({0, 9}, DType::kInt64, 10));
  EXPECT_TRUE(fit_tokens({-5, std::int64_t{1} << 62}, DType::kInt64, 0));
  EXPECT_TRUE(fit_tokens({0, 255}, DType::kUint8, 0));
  EXPECT_TRUE(fit_tokens({0, 10}, DType::kFloat32, 0));
  expect_unfit(fit_tokens({0, 10}, DType::kInt64, 10), ErrorCode::kData,
               {"values from 0 to 10", "\"tokens\" takes 0 to 9"});
  expect_unfit(fit_tokens({-1, 3}, DType::kInt64, 10), ErrorCode::kData, {"values from -1 to 3", "takes 0 to 9"});
  expect_unfit(fit_tokens({0, std::int64_t{1} << 31}, DType::kInt32, 0), ErrorCode::kData,
               {"to 2147483648", "takes -2147483648 to 2147483647"});
  expect_unfit(fit_tokens({0, 256}, DType::kUint8, 0), ErrorCode::kData, {"to 256", "takes 0 to 255"});
}

TEST_F(Fits, ColumnsThatTheDataLacksAreNamed) {
  ModelSpec three;
  three.columns = {{.name = "a", .shape = {2}}, {.name = "b", .shape = {}}, {.name = "c", .shape = {}}};
  expect_unfit(fits(labels_, three, ModelSection(), Source()), ErrorCode::kConfig,
               {"3 columns", "\"a\", \"b\", \"c\"", "have 2"});
}

// ---- evaluation ----

std::vector<ColumnSpec> columns_of(DType labels, std::vector<std::uint64_t> shape) {
  return {{.name = "inputs", .dtype = DType::kFloat32, .shape = {2}},
          {.name = "labels", .dtype = labels, .shape = std::move(shape)}};
}

template <typename T>
std::vector<T> column(const BatchBuffer& buffer, std::size_t index) {
  const auto values = buffer.batch().columns[index].as<T>();
  return {values.begin(), values.end()};
}

TEST(EvaluationBatches, CoverTheSetOnceInOrder) {
  const MemoryDataset dataset = three_labels();
  EvaluationBatches batches(dataset, 2, columns_of(DType::kInt64, {}));
  const BatchBuffer* batch = *batches.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(column<float>(*batch, 0), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(column<std::int64_t>(*batch, 1), (Labels{2, 0}));
  batch = *batches.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->examples(), 1u);
  EXPECT_EQ(column<float>(*batch, 0), (Floats{5, 6}));
  EXPECT_EQ(*batches.next(), nullptr);
  batches.restart();
  EXPECT_EQ((*batches.next())->examples(), 2u);
}

TEST(EvaluationBatches, GiveTargetsToModelsThatCompareWithValues) {
  const MemoryDataset dataset = three_labels();
  EvaluationBatches batches(dataset, 3, columns_of(DType::kFloat32, {3}));
  const BatchBuffer* batch = *batches.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(column<float>(*batch, 1), (Floats{0, 0, 1, 1, 0, 0, 0, 1, 0}));
}

TEST(BatchBuffer, IsAligned) {
  const MemoryDataset dataset = three_labels();
  BatchBuffer buffer(dataset, 3, columns_of(DType::kInt64, {}));
  ASSERT_TRUE(buffer.fill(std::vector<std::uint64_t>{1}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.batch().columns[0].bytes.data()) % kBatchAlignment, 0u);
  EXPECT_EQ(buffer.examples(), 1u);
  ASSERT_TRUE(buffer.fill({}));
  EXPECT_EQ(buffer.examples(), 0u);
  EXPECT_TRUE(buffer.batch().columns[0].bytes.empty());
}

TEST(Sources, TakeTheirKeys) {
  DataSection data;
  data.path = "/data";
  data.files = "train*";
  data.records = {5, 10};
  data.scale = 0.5;
  EvaluateSection evaluate;
  evaluate.files = "test*";
  const Source training = training_source(data);
  EXPECT_EQ(training.path, "/data");
  EXPECT_EQ(training.begin, 5u);
  EXPECT_EQ(training.end, 10u);
  const Source test = evaluation_source(data, evaluate);
  EXPECT_EQ(test.path, "/data");
  EXPECT_EQ(test.files, "test*");
  EXPECT_EQ(test.end, 0u);
  EXPECT_EQ(test.scale, 0.5);
  EXPECT_EQ(test.path_key, "data.path");
  evaluate.path = "/data";  // the reader of job.toml would fill this in
  EXPECT_EQ(evaluation_source(data, evaluate).path_key, "data.path");
  evaluate.path = "/other";
  EXPECT_EQ(evaluation_source(data, evaluate).path, "/other");
  EXPECT_EQ(evaluation_source(data, evaluate).path_key, "evaluate.path");
}

TEST(CancelledLoading, EndsWithAnErrorWhateverTheFormat) {
  const Folder folder;
  folder.write("a.csv", "1,2\n3,4\n");
  folder.write("x-images", idx_bytes({2, 1}, {1, 2}));
  folder.write("x-labels", idx_bytes({2}, {0, 1}));
  for (Source cancelled :
       {source(DataFormat::kCsv, folder, "a.csv", ""), source(DataFormat::kIdx, folder, "x-images", "x-labels")}) {
    ASSERT_TRUE(load_dataset(cancelled));
    cancelled.is_cancelled = [] { return true; };
    const Result<std::unique_ptr<Dataset>> result = load_dataset(cancelled);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kTemporary);
  }
}

}  // namespace
}  // namespace disttrain::input
