// Training records that are mixed with others.
#include "workerd/input/mixed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/workerd/input/input_files.h"

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

TEST_F(MixedDatasetTest, ModelsMustTakeFloats) {
  const ColumnSpec inputs{.name = "x", .dtype = DType::kFloat32, .shape = {2}};
  const auto error_of = [&](const ColumnSpec& x, const ColumnSpec& y) {
    const Status ok = can_mix(*dataset_, {x, y});
    return ok ? "" : ok.error().message;
  };
  EXPECT_EQ(error_of(inputs, {.name = "y", .dtype = DType::kFloat32, .shape = {3}}), "");
  EXPECT_THAT(
      error_of(inputs, {.name = "y", .dtype = DType::kInt64, .shape = {}}),
      HasSubstr("the model's column \"y\" takes int64: export the model with a loss that takes a float for each"));
  EXPECT_THAT(error_of(inputs, {.name = "y", .dtype = DType::kFloat32, .shape = {}}),
              HasSubstr("takes the number of a class"));
  EXPECT_THAT(error_of({.name = "x", .dtype = DType::kInt32, .shape = {2}},
                       {.name = "y", .dtype = DType::kFloat32, .shape = {3}}),
              HasSubstr("inputs that are fractions, but the model's column \"x\" takes int32"));
}

}  // namespace
}  // namespace disttrain::input
