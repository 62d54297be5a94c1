#include "common/update/update_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/random.h"
#include "tests/common/update/widths.h"

namespace disttrain::update {
namespace {

struct RuleCase {
  std::string name;
  OptimizerConfig optimizer;
  ClipConfig clip;
  std::size_t slots = 0;
};

OptimizerConfig optimizer_of(Rule rule, double learning_rate, double weight_decay, double momentum, double epsilon) {
  OptimizerConfig optimizer;
  optimizer.rule = rule;
  optimizer.learning_rate = learning_rate;
  optimizer.weight_decay = weight_decay;
  optimizer.momentum = momentum;
  optimizer.epsilon = epsilon;
  return optimizer;
}

std::vector<RuleCase> rule_cases() {
  const ClipConfig none;
  const ClipConfig clip{ClipKind::kValue, 0.7};
  return {
      {"Sgd", optimizer_of(Rule::kSgd, 0.05, 0.0, 0.9, 1e-8), none, 0},
      {"SgdDecayed", optimizer_of(Rule::kSgd, 0.05, 0.01, 0.9, 1e-8), none, 0},
      {"SgdClipped", optimizer_of(Rule::kSgd, 0.05, 0.01, 0.9, 1e-8), clip, 0},
      {"Momentum", optimizer_of(Rule::kMomentum, 0.05, 0.01, 0.9, 1e-8), none, 1},
      {"MomentumClipped", optimizer_of(Rule::kMomentum, 0.05, 0.0, 0.5, 1e-8), clip, 1},
      {"Nesterov", optimizer_of(Rule::kNesterov, 0.05, 0.01, 0.9, 1e-8), none, 1},
      {"Adagrad", optimizer_of(Rule::kAdagrad, 0.05, 0.01, 0.9, 1e-10), none, 1},
      {"Rmsprop", optimizer_of(Rule::kRmsprop, 0.01, 0.01, 0.0, 1e-8), none, 1},
      {"RmspropWithMomentum", optimizer_of(Rule::kRmsprop, 0.01, 0.01, 0.9, 1e-8), none, 2},
      {"Adam", optimizer_of(Rule::kAdam, 0.01, 0.0, 0.9, 1e-8), none, 2},
      {"AdamDecayedClipped", optimizer_of(Rule::kAdam, 0.01, 0.1, 0.9, 1e-8), clip, 2},
      {"Adamw", optimizer_of(Rule::kAdamw, 0.01, 0.1, 0.9, 1e-8), none, 2},
  };
}

// One element in float64. This code follows the papers, and shares nothing with rules.cc.
struct Reference {
  double p = 0.0;
  double a = 0.0;
  double b = 0.0;

  void update(const RuleCase& rule, const UpdateStep& step, double gradient) {
    const OptimizerConfig& o = rule.optimizer;
    const double eta = step.learning_rate;
    double g = gradient * step.gradient_scale;
    if (rule.clip.kind == ClipKind::kValue) g = std::clamp(g, -rule.clip.value, rule.clip.value);
    if (o.rule != Rule::kAdamw) g += o.weight_decay * p;
    switch (o.rule) {
      case Rule::kSgd:
        p = p - eta * g;
        break;
      case Rule::kMomentum:
        a = o.momentum * a + g;
        p = p - eta * a;
        break;
      case Rule::kNesterov:
        a = o.momentum * a + g;
        p = p - eta * (g + o.momentum * a);
        break;
      case Rule::kAdagrad:
        a = a + g * g;
        p = p - eta * g / (std::sqrt(a) + o.epsilon);
        break;
      case Rule::kRmsprop:
        a = o.rho * a + (1 - o.rho) * g * g;
        b = o.momentum * b + g / (std::sqrt(a) + o.epsilon);
        p = p - eta * b;
        break;
      case Rule::kAdam:
      case Rule::kAdamw: {
        a = o.beta1 * a + (1 - o.beta1) * g;
        b = o.beta2 * b + (1 - o.beta2) * g * g;
        const double t = static_cast<double>(step.t) + 1;
        const double m = a / (1 - std::pow(o.beta1, t));
        const double v = b / (1 - std::pow(o.beta2, t));
        const double decay = o.rule == Rule::kAdamw ? o.weight_decay * p : 0.0;
        p = p - eta * (m / (std::sqrt(v) + o.epsilon) + decay);
        break;
      }
    }
  }
};

// Parameters and slots of a few elements. The `offset` elements before them make every span unaligned.
struct Arrays {
  Arrays(std::size_t elements, std::size_t slot_count, std::size_t offset = 0)
      : size(elements), begin(offset), p(elements + offset), slots(slot_count, std::vector<float>(elements + offset)) {
    Random random(1, stream_of("update test parameters"));
    for (std::size_t i = begin; i < p.size(); ++i) p[i] = static_cast<float>(random.uniform() * 2.0 - 1.0);
  }

  std::span<float> parameters() { return std::span(p).subspan(begin); }
  SlotSpans slot_spans() { return slot_spans(0, size); }
  SlotSpans slot_spans(std::size_t from, std::size_t count) {
    SlotSpans spans;
    for (std::size_t s = 0; s < slots.size(); ++s) spans[s] = std::span(slots[s]).subspan(begin + from, count);
    return spans;
  }

  std::size_t size;
  std::size_t begin;
  std::vector<float> p;
  std::vector<std::vector<float>> slots;
};

std::vector<float> gradient_of(std::uint64_t step, std::size_t size, std::size_t worker = 0) {
  Random random(step, stream_of("update test gradient", worker));
  std::vector<float> gradient(size);
  for (float& g : gradient) g = static_cast<float>(random.uniform() * 4.0 - 2.0);
  return gradient;
}

UpdateStep step_of(const RuleCase& rule, std::uint64_t t) {
  return {.learning_rate = rule.optimizer.learning_rate / (1.0 + 0.01 * static_cast<double>(t)),
          .t = t,
          .gradient_scale = t % 2 == 0 ? 0.5 : 1.0};
}

constexpr std::size_t kOddSize = 1003;
constexpr std::uint64_t kSteps = 40;

class EachRule : public testing::TestWithParam<RuleCase> {
 protected:
  UpdateRule rule(VectorWidth width = best_vector_width()) const {
    return UpdateRule(GetParam().optimizer, GetParam().clip, width);
  }
  // The parameters and slots after some steps. Each step is applied to all elements in one call.
  Arrays trained(VectorWidth width, std::size_t size = kOddSize, std::size_t offset = 0) const {
    Arrays arrays(size, rule().slots(), offset);
    for (std::uint64_t t = 0; t < kSteps; ++t)
      rule(width).apply(step_of(GetParam(), t), arrays.parameters(), gradient_of(t, size), arrays.slot_spans());
    return arrays;
  }
};

TEST_P(EachRule, HasTheSlotsOfItsFormula) {
  EXPECT_EQ(rule().slots(), GetParam().slots);
}

TEST_P(EachRule, AgreesWithFloat64OverManySteps) {
  Arrays arrays = trained(best_vector_width());
  Arrays start(kOddSize, rule().slots());
  std::vector<Reference> references(kOddSize);
  for (std::size_t i = 0; i < kOddSize; ++i) references[i].p = start.p[i];
  for (std::uint64_t t = 0; t < kSteps; ++t) {
    const std::vector<float> gradient = gradient_of(t, kOddSize);
    for (std::size_t i = 0; i < kOddSize; ++i)
      references[i].update(GetParam(), step_of(GetParam(), t), static_cast<double>(gradient[i]));
  }
  double moved = 0.0;
  for (std::size_t i = 0; i < kOddSize; ++i) {
    ASSERT_NEAR(arrays.p[i], references[i].p, 2e-5 * std::max(1.0, std::abs(references[i].p))) << "element " << i;
    moved += std::abs(references[i].p - start.p[i]) / kOddSize;
  }
  EXPECT_GT(moved, 0.01);
}

TEST_P(EachRule, EveryVectorWidthGivesTheSameBits) {
  const Arrays plain = trained(VectorWidth::kBaseline);
  for (VectorWidth width : available_widths()) {
    const Arrays other = trained(width);
    ASSERT_EQ(other.p, plain.p) << "width " << static_cast<int>(width);
    ASSERT_EQ(other.slots, plain.slots) << "width " << static_cast<int>(width);
  }
}

TEST_P(EachRule, AlignmentDoesNotChangeBits) {
  Arrays aligned = trained(best_vector_width());
  for (std::size_t offset : {1u, 3u, 7u}) {
    Arrays shifted = trained(best_vector_width(), kOddSize, offset);
    ASSERT_TRUE(std::ranges::equal(shifted.parameters(), aligned.parameters())) << "offset " << offset;
  }
}

TEST_P(EachRule, PiecesGiveTheSameBitsAsTheWhole) {
  const Arrays whole = trained(best_vector_width());
  Arrays pieces(kOddSize, rule().slots());
  Random random(3);
  for (std::uint64_t t = 0; t < kSteps; ++t) {
    const std::vector<float> gradient = gradient_of(t, kOddSize);
    for (std::size_t begin = 0; begin < kOddSize;) {
      const std::size_t size = std::min<std::size_t>(kOddSize - begin, 1 + random.below(200));
      rule().apply(step_of(GetParam(), t), pieces.parameters().subspan(begin, size),
                   std::span(gradient).subspan(begin, size), pieces.slot_spans(begin, size));
      begin += size;
    }
  }
  EXPECT_EQ(pieces.p, whole.p);
  EXPECT_EQ(pieces.slots, whole.slots);
}

// 5003 elements are more than one block of apply_sum
TEST_P(EachRule, SumOfGradientsIsAppliedAsIfItHadBeenWritten) {
  constexpr std::size_t kSize = 5003;
  Arrays written(kSize, rule().slots());
  Arrays fused(kSize, rule().slots());
  for (std::uint64_t t = 0; t < 5; ++t) {
    const auto first = gradient_of(t, kSize, 1);
    const auto second = gradient_of(t, kSize, 2);
    const auto third = gradient_of(t, kSize, 3);
    std::vector<float> sum(kSize);
    for (std::size_t i = 0; i < kSize; ++i) sum[i] = (0.5F * first[i] + 3.0F * second[i]) + 1.0F * third[i];
    rule().apply(step_of(GetParam(), t), written.parameters(), sum, written.slot_spans());
    const std::vector<WeightedGradient> gradients{{first, 0.5F}, {second, 3.0F}, {third, 1.0F}};
    rule().apply_sum(step_of(GetParam(), t), fused.parameters(), gradients, fused.slot_spans());
  }
  EXPECT_EQ(fused.p, written.p);
  EXPECT_EQ(fused.slots, written.slots);
}

TEST_P(EachRule, OneGradientOfWeightOneIsApplied) {
  Arrays sum(kOddSize, rule().slots());
  const auto gradient = gradient_of(0, kOddSize);
  const std::vector<WeightedGradient> gradients{{gradient, 1.0F}};
  rule().apply_sum(step_of(GetParam(), 0), sum.parameters(), gradients, sum.slot_spans());
  Arrays single(kOddSize, rule().slots());
  rule().apply(step_of(GetParam(), 0), single.parameters(), gradient, single.slot_spans());
  EXPECT_EQ(sum.p, single.p);
}

TEST_P(EachRule, NanInAGradientReachesItsParameterOnly) {
  Arrays arrays(9, rule().slots());
  std::vector<float> gradient(9, 0.25F);
  gradient[4] = std::numeric_limits<float>::quiet_NaN();
  rule().apply(step_of(GetParam(), 0), arrays.parameters(), gradient, arrays.slot_spans());
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(arrays.p[i]), i == 4) << "element " << i;
}

TEST_P(EachRule, EmptyPieceChangesNothingAroundIt) {
  Arrays arrays = trained(best_vector_width(), 9);
  const Arrays before = arrays;
  rule().apply(step_of(GetParam(), kSteps), arrays.parameters().subspan(4, 0), {}, arrays.slot_spans(4, 0));
  rule().apply(step_of(GetParam(), kSteps), {}, {}, {});
  EXPECT_EQ(arrays.p, before.p);
  EXPECT_EQ(arrays.slots, before.slots);
}

INSTANTIATE_TEST_SUITE_P(Rules, EachRule, testing::ValuesIn(rule_cases()),
                         [](const testing::TestParamInfo<RuleCase>& rule) { return rule.param.name; });

TEST(UpdateRule, ClipByValueComesAfterTheScaleAndBeforeTheDecay) {
  const UpdateRule rule(optimizer_of(Rule::kSgd, 1.0, 0.5, 0.0, 0.0), ClipConfig{ClipKind::kValue, 2.0});
  std::vector<float> p{10.0F, 10.0F, 10.0F};
  const std::vector<float> gradient{8.0F, -8.0F, 2.0F};
  rule.apply({.learning_rate = 1.0, .t = 0, .gradient_scale = 0.5}, p, gradient, {});
  EXPECT_EQ(p, (std::vector<float>{10.0F - (2.0F + 5.0F), 10.0F - (-2.0F + 5.0F), 10.0F - (1.0F + 5.0F)}));
}

TEST(UpdateRule, GlobalNormClipDoesNotLimitValues) {
  const UpdateRule rule(optimizer_of(Rule::kSgd, 1.0, 0.0, 0.0, 0.0), ClipConfig{ClipKind::kGlobalNorm, 2.0});
  std::vector<float> p{0.0F};
  rule.apply({.learning_rate = 1.0}, p, std::vector<float>{8.0F}, {});
  EXPECT_EQ(p[0], -8.0F);
}

TEST(UpdateRuleDeathTest, SpansOfOtherSizesAreABug) {
  const UpdateRule rule(optimizer_of(Rule::kMomentum, 1.0, 0.0, 0.9, 0.0), ClipConfig{});
  std::vector<float> p(4);
  std::vector<float> velocity(3);
  EXPECT_DEATH(rule.apply({}, p, std::vector<float>(5), {p, {}}), "check failed");
  EXPECT_DEATH(rule.apply({}, p, std::vector<float>(4), {velocity, {}}), "check failed");
  const std::vector<float> shorter(3);
  const std::vector<WeightedGradient> gradients{{shorter, 1.0F}};
  EXPECT_DEATH(rule.apply_sum({}, p, gradients, {velocity, {}}), "check failed");
}

}  // namespace
}  // namespace disttrain::update
