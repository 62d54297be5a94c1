// Updates say whether they have written a large number, an infinity or a NaN (common/update/magnitude.h).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/update/magnitude.h"
#include "common/update/update_rule.h"

namespace disttrain::update {
namespace {

constexpr std::size_t kElements = 5003;  // more than two blocks, and no multiple of a vector

// Parameters, slots and a gradient of usual size. update() changes the first two.
template <typename T>
struct Arrays {
  explicit Arrays(std::size_t slot_count) : slots(slot_count, std::vector<T>(kElements)) {}
  bool update(const UpdateRule& rule) {
    SlotSpansOf<T> spans;
    for (std::size_t s = 0; s < slots.size(); ++s) spans[s] = slots[s];
    const WeightedGradientOf<T> twice[] = {{gradient, T{1}}, {gradient, T{1}}};
    const UpdateStep step{.learning_rate = 0.01, .t = 0, .gradient_scale = 0.5};
    return rule.apply_sum<T>(step, parameters, twice, spans);
  }
  bool is_small() const {
    const auto small = [](const std::vector<T>& values) {
      return largest_magnitude<T>(values) < kLarge<T>;  // false for a NaN
    };
    bool all = small(parameters);
    for (const auto& slot : slots) all = all && small(slot);
    return all;
  }

  std::vector<T> parameters = std::vector<T>(kElements, T{0.5});
  std::vector<T> gradient = std::vector<T>(kElements, T{0.25});
  std::vector<std::vector<T>> slots;
};

class Overflow : public testing::TestWithParam<Rule> {
 protected:
  template <typename T>
  void test(VectorWidth width) {
    OptimizerConfig optimizer;
    optimizer.rule = GetParam();
    for (const double momentum : {0.0, 0.9}) {
      optimizer.momentum = momentum;
      const UpdateRule rule(optimizer, ClipConfig(), width);
      Arrays<T> usual(rule.slots());
      EXPECT_TRUE(usual.update(rule));
      EXPECT_TRUE(usual.is_small());
      for (const T bad :
           {std::numeric_limits<T>::max(), -std::numeric_limits<T>::max(), std::numeric_limits<T>::infinity(),
            std::numeric_limits<T>::quiet_NaN(), -std::numeric_limits<T>::quiet_NaN()})
        for (const std::size_t at : {std::size_t{0}, std::size_t{2047}, std::size_t{4100}, kElements - 1}) {
          Arrays<T> spoiled(rule.slots());
          spoiled.gradient[at] = bad;
          EXPECT_FALSE(spoiled.update(rule)) << bad << " at " << at;
          EXPECT_FALSE(spoiled.is_small()) << bad << " at " << at;
        }
      Arrays<T> nan(rule.slots());
      nan.parameters[7] = std::numeric_limits<T>::quiet_NaN();
      EXPECT_FALSE(nan.update(rule));
    }
  }
};

TEST_P(Overflow, IsSaidOfEachElementAndEachWidth) {
  for (const VectorWidth width : {VectorWidth::kBaseline, best_vector_width()}) {
    test<float>(width);
    test<double>(width);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, Overflow,
                         testing::Values(Rule::kSgd, Rule::kMomentum, Rule::kNesterov, Rule::kAdagrad, Rule::kRmsprop,
                                         Rule::kAdam, Rule::kAdamw, Rule::kLamb, Rule::kFtrl));

}  // namespace
}  // namespace disttrain::update
