// The models of engine/autograd compute what PyTorch computes. tests/data/builtin-models has PyTorch's
// numbers; pytorch_numbers.py makes them, and explains the format.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "tests/engine/autograd_bench.h"

namespace disttrain::workerd {
namespace {

using test::Bench;
using test::Case;
using test::TestBatch;

// A norm, and the products with two random directions.
struct Fingerprint {
  double norm = 0.0;
  double products[2] = {0.0, 0.0};
};

Fingerprint fingerprint(std::span<const float> values) {
  Fingerprint result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    result.norm += value * value;
    result.products[0] += value * test::random_at(7, i);
    result.products[1] += value * test::random_at(8, i);
  }
  result.norm = std::sqrt(result.norm);
  return result;
}

// PyTorch's numbers for one case.
struct Numbers {
  std::vector<std::string> variables;  // "NAME SHAPE KIND"
  std::vector<double> losses;
  std::map<std::string, Fingerprint> gradients;
  std::map<std::string, Fingerprint> states;
  double evaluation = 0.0;
};

Numbers read_numbers(const std::string& name) {
  Numbers numbers;
  std::ifstream file(std::string(DISTTRAIN_TEST_DATA) + "/builtin-models/" + name + ".txt");
  EXPECT_TRUE(file.good()) << name;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    std::string of;
    words >> kind >> of;
    Fingerprint values;
    if (kind == "variable") {
      numbers.variables.push_back(line.substr(kind.size() + 1));
    } else if (kind == "loss") {
      words >> numbers.losses.emplace_back();
    } else if (kind == "evaluation") {
      numbers.evaluation = std::stod(of);
    } else {
      words >> values.norm >> values.products[0] >> values.products[1];
      (kind == "state" ? numbers.states : numbers.gradients)[of] = values;
    }
    EXPECT_FALSE(words.fail()) << line;
  }
  return numbers;
}

std::vector<std::string> describe(const ModelSpec& spec) {
  std::vector<std::string> lines;
  for (const VariableSpec& variable : spec.variables) {
    std::string shape;
    for (const std::uint64_t dimension : variable.shape)
      shape += (shape.empty() ? "" : "x") + std::to_string(dimension);
    lines.push_back(variable.name + " " + shape + " " +
                    (variable.kind == VariableKind::kState ? "state" : "trainable"));
  }
  return lines;
}

void expect_near(const Fingerprint& found, const Fingerprint& expected, double tolerance, const std::string& name) {
  const double error = 1e-6 + tolerance * expected.norm;
  EXPECT_NEAR(found.norm, expected.norm, error) << name;
  for (const int i : {0, 1}) EXPECT_NEAR(found.products[i], expected.products[i], error) << name;
}

// Without gaps, in ascending order, and all elements.
void expect_complete(const test::Ranges& ranges, std::uint64_t elements) {
  std::uint64_t end = 0;
  for (const auto& [from, to] : ranges) {
    EXPECT_EQ(from, end);
    EXPECT_GT(to, from);
    end = to;
  }
  EXPECT_EQ(end, elements);
}

class BuiltinModel : public testing::TestWithParam<Case> {};

TEST_P(BuiltinModel, ComputesWhatPyTorchComputes) {
  const Numbers numbers = read_numbers(GetParam().name);
  TestBatch records = GetParam().records;
  Bench bench(GetParam().model);
  EXPECT_EQ(describe(bench.spec()), numbers.variables);
  // In a resnet a rounding error decides whether a relu lets a value pass. That changes gradients by up to 2 %, and
  // with them how far later losses fall: by 0.01 % on a CPU without AVX-512.
  const bool is_resnet = GetParam().model.builtin == "resnet";
  const double tolerance = is_resnet ? 0.05 : 0.001;
  for (std::size_t step = 0; step < numbers.losses.size(); ++step) {
    const double fall = is_resnet ? std::abs(numbers.losses[step] - numbers.losses[0]) : 0.0;
    EXPECT_NEAR(bench.step(records), numbers.losses[step], 1e-5 + 1e-4 * numbers.losses[step] + 1e-3 * fall)
        << "step " << step;
    expect_complete(bench.ranges(), bench.gradients().size());
    for (std::size_t v = 0; step == 0 && v < bench.spec().variables.size(); ++v)
      if (const VariableSpec& variable = bench.spec().variables[v]; variable.kind == VariableKind::kTrainable)
        expect_near(fingerprint(bench.gradient(v)), numbers.gradients.at(variable.name), tolerance, variable.name);
    bench.apply();
  }
  for (std::size_t v = 0; v < bench.spec().variables.size(); ++v)
    if (const VariableSpec& variable = bench.spec().variables[v]; variable.kind == VariableKind::kState)
      expect_near(fingerprint(bench.parameter(v)), numbers.states.at(variable.name), 1e-3, variable.name);
  const Result<EngineOutput> evaluated = bench.evaluate(records);
  ASSERT_TRUE(evaluated) << evaluated.error().message;
  EXPECT_NEAR(evaluated->loss_sum / static_cast<double>(evaluated->examples), numbers.evaluation,
              1e-5 + 1e-3 * numbers.evaluation);
  EXPECT_EQ(evaluated->metrics.size(), accumulator_size(bench.spec().metrics));
}

INSTANTIATE_TEST_SUITE_P(Small, BuiltinModel, testing::ValuesIn(test::small_cases()), test::name_of);
INSTANTIATE_TEST_SUITE_P(Deep, BuiltinModel, testing::ValuesIn(test::deep_cases()), test::name_of);

}  // namespace
}  // namespace disttrain::workerd
