// Training records that are mixed with others.
#include "input/mixed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "input/columns.h"
#include "input/data_figures.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::HasSubstr;

constexpr Draw kTraining{.is_training = true, .seed = 7, .epoch = 2};

TEST(Mixture, SharesAreFromABetaDistribution) {
  for (const double mix : {0.2, 1.0}) {
    double sum = 0.0;
    double squares = 0.0;
    constexpr std::uint64_t kRecords = 20000;
    for (std::uint64_t record = 0; record < kRecords; ++record) {
      const Mixture mixture = draw_mixture(mix, kTraining, record, kRecords);
      ASSERT_LT(mixture.other, kRecords);
      ASSERT_GE(mixture.share, 0.0F);
      ASSERT_LE(mixture.share, 1.0F);
      sum += double{mixture.share};
      squares += (double{mixture.share} - 0.5) * (double{mixture.share} - 0.5);
    }
    EXPECT_NEAR(sum / kRecords, 0.5, 0.01);
    EXPECT_NEAR(squares / kRecords, 1.0 / (4.0 * (2.0 * mix + 1.0)), 0.004);  // the variance of Beta(mix, mix)
  }
}

// Such a share is 0 or 1 in nearly all mixtures. Its powers are below the smallest double.
TEST(Mixture, ATinyMixKeepsOneOfBothRecords) {
  for (const double mix : {1e-12, 1e-300, 5e-324}) {
    double sum = 0.0;
    constexpr std::uint64_t kRecords = 2000;
    for (std::uint64_t record = 0; record < kRecords; ++record) {
      const float share = draw_mixture(mix, kTraining, record, kRecords).share;
      ASSERT_TRUE(share == 0.0F || share == 1.0F) << share;
      sum += double{share};
    }
    EXPECT_NEAR(sum / kRecords, 0.5, 0.05);
  }
}

TEST(Mixture, DependsOnSeedEpochAndRecord) {
  const auto at = [](const Draw& draw, std::uint64_t record) { return draw_mixture(0.5, draw, record, 1000); };
  const Mixture one = at(kTraining, 3);
  EXPECT_EQ(at(kTraining, 3).share, one.share);
  EXPECT_EQ(at(kTraining, 3).other, one.other);
  EXPECT_NE(at(kTraining, 4).share, one.share);
  EXPECT_NE(at({.is_training = true, .seed = 8, .epoch = 2}, 3).share, one.share);
  EXPECT_NE(at({.is_training = true, .seed = 7, .epoch = 3}, 3).share, one.share);
}

class MixedDatasetTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kRecords = 50;

  MixedDatasetTest() {
    std::vector<float> inputs;
    std::vector<std::int64_t> labels;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      inputs.insert(inputs.end(), {static_cast<float>(i), static_cast<float>(100 + i)});
      labels.push_back(static_cast<std::int64_t>(i % 3));
    }
    folder_.write("x.npy", npy("<f4", "(50, 2)", inputs));
    folder_.write("y.npy", npy("<i8", "(50,)", labels));
    Source source = input::source(DataFormat::kNpy, folder_, "x.npy");
    source.labels = "y.npy";
    dataset_ = make_mixed_dataset(load(source), 0.4);
  }

  Folder folder_;
  std::unique_ptr<Dataset> dataset_;
};

TEST_F(MixedDatasetTest, InputsAndLabelsAreMixedAlike) {
  std::vector<std::uint64_t> indices(kRecords);
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<float> inputs(2 * kRecords);
  std::vector<float> labels(3 * kRecords);
  const std::vector<ColumnOut> outs = {
      {{.name = "x", .dtype = DType::kFloat32, .shape = {2}}, std::as_writable_bytes(std::span(inputs)), {0, 0}},
      {{.name = "y", .dtype = DType::kFloat32, .shape = {3}}, std::as_writable_bytes(std::span(labels)), {1, 0}}};
  ASSERT_TRUE(dataset_->gather(indices, outs, kTraining));
  bool has_two_classes = false;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    const auto [other, share] = draw_mixture(0.4, kTraining, i, kRecords);
    const float value = share * static_cast<float>(i) + (1.0F - share) * static_cast<float>(other);
    EXPECT_NEAR(inputs[2 * i], value, 1e-4F);
    EXPECT_NEAR(inputs[2 * i + 1], 100.0F + value, 1e-4F);
    std::vector<float> expected(3, 0.0F);
    expected[i % 3] += share;
    expected[other % 3] += 1.0F - share;
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(labels[3 * i + c], expected[c], 1e-6F);
    has_two_classes = has_two_classes || (labels[3 * i] > 0.1F && labels[3 * i + 1] > 0.1F);
  }
  EXPECT_TRUE(has_two_classes);
  ASSERT_TRUE(dataset_->gather(indices, outs, {}));
  for (std::uint64_t i = 0; i < kRecords; ++i) EXPECT_EQ(inputs[2 * i], static_cast<float>(i)) << "an evaluation";
}

// The values of a batch: two inputs of float32 and three labels of float64 of each record.
struct Gathered {
  std::vector<float> inputs;
  std::vector<double> labels;
  bool operator==(const Gathered&) const = default;
};

Gathered gather_all(const Dataset& dataset, const std::vector<std::uint64_t>& indices) {
  Gathered to{std::vector<float>(2 * indices.size()), std::vector<double>(3 * indices.size())};
  const std::vector<ColumnOut> outs = {
      {{.name = "x", .dtype = DType::kFloat32, .shape = {2}}, std::as_writable_bytes(std::span(to.inputs)), {0, 0}},
      {{.name = "y", .dtype = DType::kFloat64, .shape = {3}}, std::as_writable_bytes(std::span(to.labels)), {1, 0}}};
  EXPECT_TRUE(dataset.gather(indices, outs, kTraining));
  return to;
}

// Batches of all sizes, made at the same time, are made of the batches of one record.
TEST_F(MixedDatasetTest, BatchDependsOnItsRecordsAlone) {
  std::vector<Gathered> of_record;
  for (std::uint64_t i = 0; i < kRecords; ++i) of_record.push_back(gather_all(*dataset_, {i}));
  const auto check_batches = [&](std::uint64_t first) {
    for (const std::uint64_t size : {kRecords, std::uint64_t{1}, std::uint64_t{7}, kRecords, std::uint64_t{3}}) {
      std::vector<std::uint64_t> indices;
      Gathered expected;
      for (std::uint64_t i = 0; i < size; ++i) {
        indices.push_back((first + 3 * i) % kRecords);
        const Gathered& one = of_record[indices.back()];
        expected.inputs.insert(expected.inputs.end(), one.inputs.begin(), one.inputs.end());
        expected.labels.insert(expected.labels.end(), one.labels.begin(), one.labels.end());
      }
      EXPECT_EQ(gather_all(*dataset_, indices), expected) << size << " records from " << first;
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&check_batches, thread] {
      for (std::uint64_t first = thread; first < kRecords; first += 4) check_batches(first);
    });
  for (std::thread& thread : threads) thread.join();
}

// A data set whose properties all differ from the defaults. Its gather() fails.
class OddDataset final : public Dataset {
 public:
  std::uint64_t records() const override { return 3; }
  const std::vector<DatasetColumn>& columns() const override { return columns_; }
  std::uint64_t bytes_read() const override { return 4; }
  const std::vector<std::string>& label_names() const override { return names_; }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return fitted_; }
  std::vector<std::string> header() const override { return {"x", "y"}; }
  std::vector<std::uint64_t> blocks() const override { return {0, 2}; }
  std::span<const std::uint32_t> lengths() const override { return lengths_; }
  std::uint64_t hash() const override { return 5; }
  std::string notice() const override { return "a notice"; }
  const DataFigures* figures() const override { return &figures_; }
  Status gather(std::span<const std::uint64_t>, std::span<const ColumnOut>, const Draw&) const override {
    return fail(ErrorCode::kData, "gather " + std::to_string(++calls_));
  }

 private:
  const std::vector<DatasetColumn> columns_ = {{.name = "inputs"}};
  const std::vector<std::string> names_ = {"a", "b"};
  const std::shared_ptr<const FittedColumns> fitted_ = std::make_shared<FittedColumns>();
  const std::vector<std::uint32_t> lengths_ = {1, 2, 3};
  DataFigures figures_;
  mutable int calls_ = 0;
};

TEST(MixedDataset, EverythingElseIsThatOfTheDataSet) {
  auto made = std::make_unique<OddDataset>();
  const OddDataset& inner = *made;
  const std::unique_ptr<Dataset> mixed = make_mixed_dataset(std::move(made), 0.4);
  EXPECT_EQ(mixed->records(), inner.records());
  EXPECT_EQ(&mixed->columns(), &inner.columns());
  EXPECT_EQ(mixed->bytes_read(), inner.bytes_read());
  EXPECT_EQ(&mixed->label_names(), &inner.label_names());
  EXPECT_EQ(mixed->fitted_columns(), inner.fitted_columns());
  EXPECT_EQ(mixed->header(), inner.header());
  EXPECT_EQ(mixed->blocks(), inner.blocks());
  EXPECT_EQ(mixed->lengths().data(), inner.lengths().data());
  EXPECT_EQ(mixed->hash(), inner.hash());
  EXPECT_EQ(mixed->notice(), inner.notice());
  EXPECT_EQ(mixed->figures(), inner.figures());
  const std::vector<std::uint64_t> indices = {1};
  EXPECT_EQ(mixed->gather(indices, {}, kTraining).error().message, "gather 1");
}

TEST_F(MixedDatasetTest, ModelsMustTakeFloats) {
  const ColumnSpec inputs{.name = "x", .dtype = DType::kFloat32, .shape = {2}};
  const auto error_of = [&](const ColumnSpec& x, const ColumnSpec& y, bool is_builtin = false) {
    const Status ok = can_mix(*dataset_, {x, y}, is_builtin);
    return ok ? "" : ok.error().message;
  };
  EXPECT_EQ(error_of(inputs, {.name = "y", .dtype = DType::kFloat32, .shape = {3}}), "");
  EXPECT_THAT(
      error_of(inputs, {.name = "y", .dtype = DType::kInt64, .shape = {}}),
      HasSubstr("the model's column \"y\" takes int64: export the model with a loss that takes a float for each"));
  EXPECT_THAT(error_of(inputs, {.name = "y", .dtype = DType::kFloat32, .shape = {}}),
              HasSubstr("takes the number of a class"));
  EXPECT_THAT(
      error_of(inputs, {.name = "y", .dtype = DType::kFloat32, .shape = {}}, true),
      HasSubstr("takes the number of a class: set model.loss to \"softmax_cross_entropy\", or set data.mix to 0"));
  EXPECT_THAT(error_of({.name = "x", .dtype = DType::kInt32, .shape = {2}},
                       {.name = "y", .dtype = DType::kFloat32, .shape = {3}}),
              HasSubstr("inputs that are fractions, but the model's column \"x\" takes int32"));
}

}  // namespace
}  // namespace disttrain::input
