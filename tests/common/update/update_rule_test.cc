#include "common/update/update_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/random.h"
#include "tests/common/update/reference.h"
#include "tests/common/update/widths.h"

namespace disttrain::update {
namespace {

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

TEST(UpdateRule, SlotsOfTwoRulesMeanTheSameOrNot) {
  for (const Rule rule : {Rule::kSgd, Rule::kMomentum, Rule::kNesterov, Rule::kAdagrad, Rule::kRmsprop, Rule::kAdam,
                          Rule::kAdamw, Rule::kLamb, Rule::kFtrl})
    EXPECT_TRUE(has_slots_of(rule, name_of(rule))) << name_of(rule);
  EXPECT_TRUE(has_slots_of(Rule::kMomentum, "nesterov"));
  EXPECT_TRUE(has_slots_of(Rule::kNesterov, "momentum"));
  EXPECT_TRUE(has_slots_of(Rule::kLamb, "adam"));
  EXPECT_TRUE(has_slots_of(Rule::kAdam, "adamw"));
  EXPECT_FALSE(has_slots_of(Rule::kAdagrad, "momentum"));
  EXPECT_FALSE(has_slots_of(Rule::kMomentum, "rmsprop"));
  EXPECT_FALSE(has_slots_of(Rule::kFtrl, "adam"));
  EXPECT_FALSE(has_slots_of(Rule::kAdam, "a rule of a later version"));
}

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

// The numbers of TensorFlow's own tests (ftrl_test.py), with learning rate 3 and initial_accumulator_value 0.1.
struct FtrlCase {
  double l1 = 0.0;
  double l2 = 0.0;
  int steps = 0;
  std::vector<float> start;
  std::vector<float> gradient;
  std::vector<float> end;
};

TEST(Ftrl, GivesTheNumbersOfTensorFlow) {
  const std::vector<FtrlCase> cases = {
      {0.0, 0.0, 3, {0.0F, 0.0F}, {0.1F, 0.2F}, {-2.60260963F, -4.29698515F}},
      {0.0, 0.0, 3, {0.0F, 0.0F}, {0.01F, 0.02F}, {-0.28432083F, -0.56694895F}},
      {0.0, 0.0, 3, {1.0F, 2.0F}, {0.1F, 0.2F}, {-2.55607247F, -3.98729396F}},
      {0.0, 0.0, 3, {4.0F, 3.0F}, {0.01F, 0.02F}, {-0.28232238F, -0.56096673F}},
      {0.001, 0.0, 10, {1.0F, 2.0F}, {0.1F, 0.2F}, {-7.66718769F, -10.91273689F}},
      {0.001, 0.0, 10, {4.0F, 3.0F}, {0.01F, 0.02F}, {-0.93460727F, -1.86147261F}},
      {0.001, 2.0, 10, {1.0F, 2.0F}, {0.1F, 0.2F}, {-0.24059935F, -0.46829352F}},
      {0.001, 2.0, 10, {4.0F, 3.0F}, {0.01F, 0.02F}, {-0.02406147F, -0.04830509F}},
  };
  for (const FtrlCase& one : cases) {
    const UpdateRule rule(ftrl_of(3.0, one.l1, one.l2), ClipConfig{});
    std::vector<float> p = one.start;
    std::vector<float> squares(2, 0.0F);
    std::vector<float> linear(2, 0.0F);
    for (int t = 0; t < one.steps; ++t)
      rule.apply({.learning_rate = 3.0, .t = static_cast<std::uint64_t>(t)}, p, one.gradient, {squares, linear});
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(p[i], one.end[i], 1e-5F * std::abs(one.end[i])) << "element " << i;
  }
}

TEST(Ftrl, L1MakesASmallParameterZero) {
  const UpdateRule rule(ftrl_of(0.1, 1.0, 0.0), ClipConfig{});
  std::vector<float> p{0.01F, 0.01F};
  std::vector<float> squares(2, 0.0F);
  std::vector<float> linear(2, 0.0F);
  rule.apply({.learning_rate = 0.1}, p, std::vector<float>{0.5F, 5.0F}, {squares, linear});
  EXPECT_EQ(p[0], 0.0F);
  EXPECT_LT(p[1], 0.0F);
}

// A whole variable in float64, after the paper's algorithm 2.
struct LambReference {
  std::vector<double> p;
  std::vector<double> m;
  std::vector<double> v;

  void update(const OptimizerConfig& o, const UpdateStep& step, const std::vector<float>& gradient, double limit) {
    const double t = static_cast<double>(step.t) + 1;
    std::vector<double> u(p.size());
    double p2 = 0.0;
    double u2 = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = std::clamp(static_cast<double>(gradient[i]) * step.gradient_scale, -limit, limit);
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      const double r = m[i] / (1 - std::pow(o.beta1, t)) / (std::sqrt(v[i] / (1 - std::pow(o.beta2, t))) + o.epsilon);
      u[i] = r + o.weight_decay * p[i];
      p2 += p[i] * p[i];
      u2 += u[i] * u[i];
    }
    const double ratio = p2 == 0.0 || u2 == 0.0 ? 1.0 : std::sqrt(p2) / std::sqrt(u2);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= step.learning_rate * ratio * u[i];
  }
};

class Lamb : public testing::TestWithParam<double> {
 protected:
  // The parameter is the weight decay.
  RuleCase rule_case() const {
    RuleCase lamb{"Lamb", optimizer_of(Rule::kLamb, 0.01, GetParam(), 0.9, 1e-6), ClipConfig{ClipKind::kValue, 0.7}, 2};
    return lamb;
  }
  UpdateRule rule(VectorWidth width = best_vector_width()) const {
    return UpdateRule(rule_case().optimizer, rule_case().clip, width);
  }
  Arrays trained(VectorWidth width) const {
    Arrays arrays(5003, 2);
    for (std::uint64_t t = 0; t < kSteps; ++t)
      rule(width).apply(step_of(rule_case(), t), arrays.parameters(), gradient_of(t, 5003), arrays.slot_spans());
    return arrays;
  }
};

TEST_P(Lamb, AgreesWithFloat64OverManySteps) {
  const Arrays arrays = trained(best_vector_width());
  const Arrays start(5003, 2);
  LambReference reference{{start.p.begin(), start.p.end()}, std::vector<double>(5003), std::vector<double>(5003)};
  for (std::uint64_t t = 0; t < kSteps; ++t)
    reference.update(rule_case().optimizer, step_of(rule_case(), t), gradient_of(t, 5003), 0.7);
  double moved = 0.0;
  for (std::size_t i = 0; i < 5003; ++i) {
    ASSERT_NEAR(arrays.p[i], reference.p[i], 2e-5) << "element " << i;
    moved += std::abs(reference.p[i] - start.p[i]) / 5003;
  }
  EXPECT_GT(moved, 0.01);
}

TEST_P(Lamb, EveryVectorWidthGivesTheSameBits) {
  const Arrays plain = trained(VectorWidth::kBaseline);
  for (VectorWidth width : available_widths()) {
    const Arrays other = trained(width);
    ASSERT_EQ(other.p, plain.p) << "width " << static_cast<int>(width);
    ASSERT_EQ(other.slots, plain.slots) << "width " << static_cast<int>(width);
  }
}

TEST_P(Lamb, PreparedPiecesGiveTheSameBitsAsTheWholeVariable) {
  const auto first = gradient_of(1, kOddSize, 1);
  const auto second = gradient_of(1, kOddSize, 2);
  const std::vector<WeightedGradient> gradients{{first, 0.5F}, {second, 3.0F}};
  Arrays whole(kOddSize, 2);
  Arrays pieces(kOddSize, 2);
  const UpdateRule lamb = rule();
  ASSERT_TRUE(lamb.is_by_variable());
  for (std::uint64_t t = 0; t < 3; ++t) {
    const UpdateStep step = step_of(rule_case(), t);
    lamb.apply_sum(step, whole.parameters(), gradients, whole.slot_spans());
    LayerNorms norms;
    const auto each_piece = [&](const auto& body) {
      Random random(t);
      for (std::size_t begin = 0; begin < kOddSize;) {
        const std::size_t size = std::min<std::size_t>(kOddSize - begin, 1 + random.below(200));
        body(begin, size);
        begin += size;
      }
    };
    each_piece([&](std::size_t begin, std::size_t size) {
      const std::vector<WeightedGradient> part{{std::span(first).subspan(begin, size), 0.5F},
                                               {std::span(second).subspan(begin, size), 3.0F}};
      lamb.prepare_sum(step, pieces.parameters().subspan(begin, size), part, pieces.slot_spans(begin, size), norms);
    });
    each_piece([&](std::size_t begin, std::size_t size) {
      lamb.finish(step, norms.trust(), pieces.parameters().subspan(begin, size), pieces.slot_spans(begin, size));
    });
    ASSERT_EQ(pieces.p, whole.p);
    ASSERT_EQ(pieces.slots, whole.slots);
  }
}

TEST_P(Lamb, TrustIsOneIfANormIsZero) {
  std::vector<float> p(3, 0.0F);
  std::vector<float> m(3, 0.0F);
  std::vector<float> v(3, 0.0F);
  rule().apply({.learning_rate = 0.25}, p, std::vector<float>{0.5F, -0.5F, 0.5F}, {m, v});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(p[i], i == 1 ? 0.25F : -0.25F, 1e-6F);  // u is 1 at the first step
  std::vector<float> still{1.0F, 2.0F, 3.0F};
  std::vector<float> zeros(3, 0.0F);
  std::fill(m.begin(), m.end(), 0.0F);
  std::fill(v.begin(), v.end(), 0.0F);
  const UpdateRule undecayed(optimizer_of(Rule::kLamb, 0.25, 0.0, 0.9, 1e-6), ClipConfig{});
  undecayed.apply({.learning_rate = 0.25}, still, zeros, {m, v});
  EXPECT_EQ(still, (std::vector<float>{1.0F, 2.0F, 3.0F}));
}

INSTANTIATE_TEST_SUITE_P(Decay, Lamb, testing::Values(0.0, 0.1));

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
