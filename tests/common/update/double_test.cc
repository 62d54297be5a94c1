// Update rules, sums and norms of doubles. The float tests are in update_rule_test.cc and vector_test.cc.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "common/random.h"
#include "common/update/update_rule.h"
#include "common/update/vector.h"
#include "tests/common/update/reference.h"
#include "tests/common/update/widths.h"

namespace disttrain::update {
namespace {

constexpr std::size_t kElements = 5003;  // more than one block of apply_sum
constexpr std::uint64_t kSteps = 40;

std::vector<double> values_of(std::uint64_t seed, double size) {
  Random random(seed, stream_of("double test"));
  std::vector<double> values(kElements);
  for (double& value : values) value = (random.uniform() * 2.0 - 1.0) * size;
  return values;
}

struct Trained {
  std::vector<double> p = values_of(1000, 1.0);
  std::array<std::vector<double>, kMaxSlots> slots;

  bool operator==(const Trained&) const = default;

  SlotSpansOf<double> slot_spans(std::size_t used, std::size_t begin, std::size_t size) {
    SlotSpansOf<double> spans;
    for (std::size_t s = 0; s < used; ++s) {
      slots[s].resize(kElements);
      spans[s] = std::span(slots[s]).subspan(begin, size);
    }
    return spans;
  }
};

UpdateStep step_of(const OptimizerConfig& optimizer, std::uint64_t t) {
  return {.learning_rate = optimizer.learning_rate / (1.0 + 0.01 * static_cast<double>(t)),
          .t = t,
          .gradient_scale = t % 2 == 0 ? 0.5 : 1.0};
}

class EachRuleOfDoubles : public testing::TestWithParam<RuleCase> {
 protected:
  // Applies each step in pieces of at most `piece` elements.
  Trained trained(VectorWidth width, std::size_t piece = kElements) const {
    const UpdateRule rule(GetParam().optimizer, GetParam().clip, width);
    Trained arrays;
    for (std::uint64_t t = 0; t < kSteps; ++t) {
      const std::vector<double> gradient = values_of(t, 2.0);
      for (std::size_t begin = 0; begin < kElements; begin += piece) {
        const std::size_t size = std::min(piece, kElements - begin);
        rule.apply<double>(step_of(GetParam().optimizer, t), std::span(arrays.p).subspan(begin, size),
                           std::span(gradient).subspan(begin, size), arrays.slot_spans(rule.slots(), begin, size));
      }
    }
    return arrays;
  }
};

// A bound that rounding to float anywhere would exceed by far.
TEST_P(EachRuleOfDoubles, AgreesWithItsFormulaInFullPrecision) {
  const Trained arrays = trained(best_vector_width());
  const std::vector<double> start = values_of(1000, 1.0);
  std::vector<Reference> references(kElements);
  for (std::size_t i = 0; i < kElements; ++i) references[i].p = start[i];
  for (std::uint64_t t = 0; t < kSteps; ++t) {
    const std::vector<double> gradient = values_of(t, 2.0);
    for (std::size_t i = 0; i < kElements; ++i)
      references[i].update(GetParam(), step_of(GetParam().optimizer, t), gradient[i]);
  }
  double moved = 0.0;
  for (std::size_t i = 0; i < kElements; ++i) {
    ASSERT_NEAR(arrays.p[i], references[i].p, 1e-12 * std::max(1.0, std::abs(references[i].p))) << "element " << i;
    moved += std::abs(references[i].p - start[i]) / static_cast<double>(kElements);
  }
  EXPECT_GT(moved, 0.01);
}

TEST_P(EachRuleOfDoubles, WidthsAndPiecesDontChangeBits) {
  const Trained plain = trained(VectorWidth::kBaseline);
  for (const VectorWidth width : available_widths())
    for (const std::size_t piece : {kElements, std::size_t{777}})
      ASSERT_EQ(trained(width, piece), plain) << "width " << static_cast<int>(width) << ", pieces of " << piece;
}

TEST_P(EachRuleOfDoubles, SumOfGradientsIsAppliedAsIfItHadBeenWritten) {
  const UpdateRule rule(GetParam().optimizer, GetParam().clip);
  const std::vector<double> first = values_of(1, 2.0);
  const std::vector<double> second = values_of(2, 2.0);
  std::vector<double> sum(kElements);
  for (std::size_t i = 0; i < kElements; ++i) sum[i] = 0.1 * first[i] + 3.0 * second[i];
  Trained written;
  rule.apply<double>(step_of(GetParam().optimizer, 0), written.p, sum, written.slot_spans(rule.slots(), 0, kElements));
  Trained fused;
  const std::vector<WeightedGradientOf<double>> gradients{{first, 0.1}, {second, 3.0}};
  rule.apply_sum<double>(step_of(GetParam().optimizer, 0), fused.p, gradients,
                         fused.slot_spans(rule.slots(), 0, kElements));
  EXPECT_EQ(fused, written);
}

INSTANTIATE_TEST_SUITE_P(Rules, EachRuleOfDoubles, testing::ValuesIn(rule_cases()),
                         [](const auto& one) { return one.param.name; });

TEST(LambOfDoubles, AgreesWithItsFormulaInFullPrecisionAndInPieces) {
  const OptimizerConfig o = optimizer_of(Rule::kLamb, 0.01, 0.1, 0.9, 1e-8);
  const UpdateRule rule(o, ClipConfig());
  Trained whole;
  Trained pieces;
  std::vector<double> p = whole.p;
  std::vector<double> m(kElements);
  std::vector<double> v(kElements);
  for (std::uint64_t t = 0; t < 5; ++t) {
    const std::vector<double> gradient = values_of(t, 2.0);
    const UpdateStep step{.learning_rate = 0.01, .t = t, .gradient_scale = 0.5};
    rule.apply<double>(step, whole.p, gradient, whole.slot_spans(2, 0, kElements));

    const std::vector<std::pair<std::size_t, std::size_t>> cuts = {{0, 1234}, {1234, kElements - 1234}};
    LayerNorms norms;
    for (const auto& [begin, size] : cuts) {
      const WeightedGradientOf<double> part{std::span(gradient).subspan(begin, size), 1.0};
      rule.prepare_sum<double>(step, std::span(pieces.p).subspan(begin, size), std::span(&part, 1),
                               pieces.slot_spans(2, begin, size), norms);
    }
    for (const auto& [begin, size] : cuts)
      rule.finish<double>(step, norms.trust(), std::span(pieces.p).subspan(begin, size),
                          pieces.slot_spans(2, begin, size));

    std::vector<double> u(kElements);
    double p2 = 0.0;
    double u2 = 0.0;
    for (std::size_t i = 0; i < kElements; ++i) {
      const double g = 0.5 * gradient[i];
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      const double exponent = static_cast<double>(t) + 1;
      u[i] =
          m[i] / (1 - std::pow(o.beta1, exponent)) / (std::sqrt(v[i] / (1 - std::pow(o.beta2, exponent))) + o.epsilon) +
          o.weight_decay * p[i];
      p2 += p[i] * p[i];
      u2 += u[i] * u[i];
    }
    for (std::size_t i = 0; i < kElements; ++i) p[i] -= 0.01 * std::sqrt(p2 / u2) * u[i];
  }
  for (std::size_t i = 0; i < kElements; ++i) ASSERT_NEAR(whole.p[i], p[i], 1e-12) << i;
  EXPECT_EQ(pieces, whole);
}

TEST(VectorOfDoubles, SumsAndAveragesAreComputedInDouble) {
  const std::vector<double> a = values_of(1, 2.0);
  const std::vector<double> b = values_of(2, 2.0);
  for (const VectorWidth width : available_widths()) {
    std::vector<double> sum(kElements);
    const std::vector<WeightedGradientOf<double>> gradients{{a, 0.1}, {b, 0.7}};
    weighted_sum<double>(sum, gradients, 0, width);
    std::vector<double> average = a;
    move_average<double>(average, b, 0.999, width);
    for (std::size_t i = 0; i < kElements; ++i) {
      ASSERT_EQ(sum[i], 0.1 * a[i] + 0.7 * b[i]) << i;
      ASSERT_EQ(average[i], 0.999 * a[i] + (1.0 - 0.999) * b[i]) << i;
    }
  }
}

TEST(VectorOfDoubles, OnlyNanAndInfinityAreNotFinite) {
  std::vector<double> values = values_of(1, 1e300);
  values[3] = -std::numeric_limits<double>::max();
  for (const VectorWidth width : available_widths()) {
    ASSERT_TRUE(all_finite<double>(values, width));
    for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()})
      for (const std::size_t at : {std::size_t{0}, kElements / 2, kElements - 1}) {
        std::vector<double> other = values;
        other[at] = bad;
        ASSERT_FALSE(all_finite<double>(other, width)) << at;
      }
  }
}

TEST(VectorOfDoubles, NormHasTheDocumentedOrder) {
  const std::vector<double> values = values_of(1, 2.0);
  double lanes[16] = {};
  for (std::size_t i = 0; i < kElements; ++i) lanes[i % 16] += values[i] * values[i];
  for (int half : {8, 4, 2, 1})
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  std::vector<double> sums(kElements);
  const std::vector<WeightedGradientOf<double>> gradients{{values, 1.0}};
  for (const VectorWidth width : available_widths()) {
    EXPECT_EQ(squared_norm<double>(values, width), lanes[0]);
    EXPECT_EQ(squared_norm_of_sum<double>(gradients, 1.0, sums, width), lanes[0]);
  }
  EXPECT_TRUE(std::isinf(squared_norm<double>(std::vector<double>{1e200})));
}

}  // namespace
}  // namespace disttrain::update
