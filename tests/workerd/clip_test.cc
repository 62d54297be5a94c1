#include "workerd/clip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "common/doubles.h"

namespace disttrain::workerd {
namespace {

using testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Two trainable variables with a state variable between them. In the flat array "b" comes first.
Layout layout() {
  Layout layout;
  for (const char* name : {"w", "mean", "b"}) {
    VariableSpec variable;
    variable.name = name;
    variable.shape = {2};
    if (variable.name == "mean") variable.kind = VariableKind::kState;
    layout.model.variables.push_back(variable);
  }
  layout.variable_begins = {4, 2, 0};
  return layout;
}

std::vector<float> clipped(std::vector<float> gradients, double limit) {
  clip_to_norm(layout(), gradients, limit);
  return gradients;
}

TEST(ClipToNorm, ScalesAllGradientsButNoState) {
  // The norm of (1, 2, 2, 4) is 5.
  EXPECT_THAT(clipped({1, 2, 100, -100, 2, 4}, 2.5), ElementsAre(0.5F, 1, 100, -100, 1, 2));
}

TEST(ClipToNorm, LeavesANormWithinTheLimit) {
  EXPECT_THAT(clipped({1, 2, 100, -100, 2, 4}, 5), ElementsAre(1, 2, 100, -100, 2, 4));
}

TEST(ClipToNorm, LeavesANormThatIsNotFinite) {
  EXPECT_THAT(clipped({kInfinity, 2, 3, 4, 5, 6}, 1), ElementsAre(kInfinity, 2, 3, 4, 5, 6));
  EXPECT_THAT(clipped({kNan, 2, 3, 4, 5, 6}, 1), ElementsAre(testing::IsNan(), 2, 3, 4, 5, 6));
}

TEST(ClipToNorm, ClipsAlthoughAStateIsNotFinite) {
  EXPECT_THAT(clipped({1, 2, kNan, kInfinity, 2, 4}, 2.5), ElementsAre(0.5F, 1, testing::IsNan(), kInfinity, 1, 2));
}

// Two doubles, two floats, and a state variable, which doesn't count.
Layout mixed_layout() {
  Layout layout;
  for (const char* name : {"wide", "narrow", "mean"}) {
    VariableSpec variable;
    variable.name = name;
    variable.shape = {2};
    layout.model.variables.push_back(variable);
  }
  layout.model.variables[0].dtype = DType::kFloat64;
  layout.model.variables[2].kind = VariableKind::kState;
  layout.shards = 1;
  layout.variable_begins = {0, 4, 6};
  layout.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(0), 4, 4, 4}};
  return layout;
}

TEST(ClipToNorm, TheNormIsThatOfDoublesAndFloatsTogether) {
  alignas(8) std::array<float, 8> words{0, 0, 0, 0, 2.0F, 4.0F, 100.0F, 100.0F};
  const std::span<double> doubles = as_doubles(std::span(words).first(4));
  doubles[0] = 1.0;
  doubles[1] = 0.1;
  const double norm = std::sqrt(1.0 + 0.1 * 0.1 + 4.0 + 16.0);
  clip_to_norm(mixed_layout(), words, 2.0 * norm);
  EXPECT_EQ(doubles[1], 0.1);
  EXPECT_EQ(words[5], 4.0F);
  clip_to_norm(mixed_layout(), words, 0.5 * norm);
  EXPECT_DOUBLE_EQ(doubles[1], 0.05);
  EXPECT_FLOAT_EQ(words[5], 2.0F);
  EXPECT_EQ(words[6], 100.0F);
}

}  // namespace
}  // namespace disttrain::workerd
