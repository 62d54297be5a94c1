// Simple reference implementations of the builtin models in double precision. They compute only losses. The tests
// compare an engine's gradients with central differences of these losses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <vector>

#include "common/builtin/builtin.h"
#include "common/layout.h"
#include "engine/dropout.h"
#include "engine/engine.h"
#include "engine/records.h"

namespace disttrain::workerd::test {

// Parameters by variable, in the order of the spec.
using Variables = std::vector<std::vector<double>>;

// A layout with one shard and one bucket: the variables in reverse order, as the placement `balanced` puts them.
inline Layout reversed_layout(const ModelSpec& spec) {
  Layout layout{spec, 1, std::vector<std::uint64_t>(spec.variables.size()), {}};
  std::uint64_t flat = 0;
  for (std::size_t v = spec.variables.size(); v-- > 0;) {
    layout.variable_begins[v] = flat;
    flat += element_count(spec.variables[v]);
  }
  for (std::uint64_t begin = 0; begin < flat; begin += kMaxBucketWords)
    layout.buckets.push_back({ShardId(0), begin, begin, std::min(kMaxBucketWords, flat - begin)});
  return layout;
}

inline std::vector<float> random_floats(std::size_t size, float scale, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-scale, scale);
  std::vector<float> result(size);
  for (float& value : result) value = values(random);
  return result;
}

inline Variables split(const Layout& layout, std::span<const float> flat) {
  Variables variables;
  for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
    const auto part = flat.subspan(layout.variable_begins[v], element_count(layout.model.variables[v]));
    variables.emplace_back(part.begin(), part.end());
  }
  return variables;
}

inline double activate_reference(Activation activation, double z) {
  switch (activation) {
    case Activation::kSigmoid:
      return 1.0 / (1.0 + std::exp(-z));
    case Activation::kRelu:
      return std::max(z, 0.0);
    case Activation::kTanh:
      return std::tanh(z);
    case Activation::kGelu:
      return 0.5 * z * (1.0 + std::erf(z / std::numbers::sqrt2));
  }
  return 0.0;
}

inline std::vector<double> dense_reference(const std::vector<double>& x, const std::vector<double>& weight,
                                           const std::vector<double>& bias) {
  std::vector<double> y = bias;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t o = 0; o < y.size(); ++o) y[o] += x[i] * weight[i * y.size() + o];
  return y;
}

// The loss of one row of outputs.
inline double loss_reference(Loss loss, const std::vector<double>& outputs, const Records& batch, std::size_t row) {
  double largest = outputs[0];
  for (double output : outputs) largest = std::max(largest, output);
  double sum = 0.0;
  double exponentials = 0.0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const double target = !batch.targets.empty() ? static_cast<double>(batch.targets[row * outputs.size() + o])
                                                 : (batch.labels[row] == static_cast<std::int64_t>(o) ? 1.0 : 0.0);
    const double z = outputs[o];
    exponentials += std::exp(z - largest);
    if (loss == Loss::kMse) sum += (z - target) * (z - target) / static_cast<double>(outputs.size());
    if (loss == Loss::kSigmoidCrossEntropy)
      sum += -target * std::log(1.0 / (1.0 + std::exp(-z))) - (1.0 - target) * std::log(1.0 / (1.0 + std::exp(z)));
    if (loss == Loss::kSoftmaxCrossEntropy) sum -= target * (z - largest);
  }
  return loss == Loss::kSoftmaxCrossEntropy ? sum + std::log(exponentials) : sum;
}

// Mean loss of an mlp over the batch.
inline double mlp_loss(const ModelSection& model, const Variables& variables, const Records& batch) {
  double sum = 0.0;
  for (std::size_t row = 0; row < batch.examples; ++row) {
    const auto input = batch.inputs.subspan(row * model.layers[0], model.layers[0]);
    std::vector<double> values(input.begin(), input.end());
    for (std::size_t l = 0; 2 * l < variables.size(); ++l) {
      values = dense_reference(values, variables[2 * l], variables[2 * l + 1]);
      if (2 * l + 2 == variables.size()) break;
      for (double& value : values) value = activate_reference(model.activation, value);
    }
    sum += loss_reference(model.loss, values, batch, row);
  }
  return sum / static_cast<double>(batch.examples);
}

// A convolution from [in, side, side] to [out, side - 4, side - 4], then the maximum of each square of 2 x 2, then the
// activation.
inline std::vector<double> convolution_reference(const std::vector<double>& image, std::size_t side, std::size_t in,
                                                 const std::vector<double>& weight, const std::vector<double>& bias,
                                                 Activation activation) {
  const std::size_t inner = side - 4;
  const std::size_t half = inner / 2;
  std::vector<double> result(bias.size() * half * half, -INFINITY);
  for (std::size_t o = 0; o < bias.size(); ++o)
    for (std::size_t y = 0; y < inner; ++y)
      for (std::size_t x = 0; x < inner; ++x) {
        double sum = bias[o];
        for (std::size_t c = 0; c < in; ++c)
          for (std::size_t dy = 0; dy < 5; ++dy)
            for (std::size_t dx = 0; dx < 5; ++dx)
              sum += image[(c * side + y + dy) * side + x + dx] * weight[((o * in + c) * 5 + dy) * 5 + dx];
        double& most = result[(o * half + y / 2) * half + x / 2];
        most = std::max(most, sum);
      }
  for (double& value : result) value = activate_reference(activation, value);
  return result;
}

// The mean loss of the cnn over the batch. seed: nullptr means without dropout.
inline double cnn_loss(const ModelSection& model, const Variables& v, const Records& batch, const StepSeed* seed) {
  std::vector<float> mask(batch.examples * 512, 1.0F);
  if (seed != nullptr) dropout_mask(*seed, model.dropout, mask);
  double sum = 0.0;
  for (std::size_t row = 0; row < batch.examples; ++row) {
    const auto input = batch.inputs.subspan(row * 784, 784);
    std::vector<double> values(input.begin(), input.end());
    values = convolution_reference(values, 28, 1, v[0], v[1], model.activation);
    values = convolution_reference(values, 12, 32, v[2], v[3], model.activation);
    values = dense_reference(values, v[4], v[5]);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = activate_reference(model.activation, values[i]) * static_cast<double>(mask[row * 512 + i]);
    values = dense_reference(values, v[6], v[7]);
    sum += loss_reference(model.loss, values, batch, row);
  }
  return sum / static_cast<double>(batch.examples);
}

// d loss / d variables[v][e] by central differences. LossFunction: double(const Variables&).
template <typename LossFunction>
double difference(const LossFunction& loss, Variables variables, std::size_t v, std::size_t e) {
  constexpr double kStep = 1e-7;  // small, because a pool has no derivative where its two largest inputs are equal
  const double at = variables[v][e];
  variables[v][e] = at + kStep;
  const double above = loss(variables);
  variables[v][e] = at - kStep;
  const double below = loss(variables);
  return (above - below) / (2 * kStep);
}

}  // namespace disttrain::workerd::test
