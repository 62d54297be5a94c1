#include "workerd/compute/cnn.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>

#include <array>
#include <tuple>
#include <vector>

#include "workerd/compute/activation.h"
#include "workerd/compute/dense.h"
#include "workerd/compute/dropout.h"
#include "workerd/compute/loss.h"
#include "workerd/compute/ready_front.h"

namespace disttrain::workerd {
namespace {

constexpr std::int64_t kSide = 28;
constexpr DenseShape kDense0{0, 1024, 512};
constexpr DenseShape kDense1{0, 512, 10};

// Indices into ModelSpec::variables.
enum Variable : std::uint32_t { kConv0 = 0, kConv1 = 2, kDense0Weight = 4, kDense1Weight = 6 };

at::Tensor view(const float* values, at::IntArrayRef shape) {
  return at::from_blob(const_cast<float*>(values), shape, at::kFloat);
}

std::span<float> values_of(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// Convolution, 2 x 2 maximum, activation, in this order: the activation sees a quarter of the values.
struct Convolution {
  Activation activation = Activation::kRelu;
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor weight_gradient;
  at::Tensor bias_gradient;
  at::Tensor input;
  at::Tensor convolved;
  at::Tensor positions;  // of the largest of each four
  at::Tensor before;     // the activation, if that needs it
  at::Tensor after;

  const at::Tensor& forward(const at::Tensor& from) {
    input = from;
    convolved = at::convolution(input, weight, bias, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1);
    std::tie(before, positions) = at::max_pool2d_with_indices(convolved, {2, 2}, {2, 2});
    after = keeps_input(activation) ? at::empty_like(before) : before;
    activate(activation, values_of(before), values_of(after));
    return after;
  }

  // `gradient` is overwritten. Returns the gradient of the input, undefined unless wanted.
  at::Tensor backward(const at::Tensor& gradient, bool wants_input) {
    activation_gradient(activation, values_of(keeps_input(activation) ? before : after), values_of(gradient));
    const at::Tensor d_convolved =
        at::max_pool2d_with_indices_backward(gradient, convolved, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, positions);
    auto [d_input, d_weight, d_bias] = at::convolution_backward(
        d_convolved, input, weight, bias.sizes(), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1, {wants_input, true, true});
    weight_gradient.copy_(d_weight);
    bias_gradient.copy_(d_bias);
    return d_input;
  }
};

class Cnn final : public Engine {
 public:
  Cnn(const ModelSection& model, const ModelSpec& spec)
      : spec_(spec), activation_(model.activation), loss_(model.loss), dropout_(model.dropout) {
    for (Convolution& convolution : convolutions_) convolution.activation = activation_;
  }

  const ModelSpec& describe() const override { return spec_; }

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    for (std::uint32_t v = 0; v < variables_.size(); ++v) {
      variables_[v] = parameters.data() + layout.variable_begins[v];
      gradients_[v] = gradients.data() + layout.variable_begins[v];
    }
    bind(convolutions_[0], kConv0, {32, 1, 5, 5});
    bind(convolutions_[1], kConv1, {64, 32, 5, 5});
    front_ = ReadyFront(layout);
    return {};
  }

  Result<StepResult> compute(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override {
    if (Status status = check(batch); !status) return tl::unexpected(status.error());
    forward(batch, &seed);
    d_outputs_.resize(outputs_.size());
    const double loss_sum = loss_of(loss_, batch, outputs_, d_outputs_);
    front_.begin(ready);
    backward(batch);
    return StepResult{static_cast<float>(loss_sum / static_cast<double>(batch.examples))};
  }

  Result<EvaluationResult> evaluate(const Batch& batch) override {
    if (Status status = check(batch); !status) return tl::unexpected(status.error());
    forward(batch, nullptr);
    return EvaluationResult{loss_of(loss_, batch, outputs_, {}), count_correct(batch, outputs_), batch.examples};
  }

 private:
  Status check(const Batch& batch) const { return check_batch(loss_, batch, spec_.input_elements, spec_.classes); }

  static DenseShape rows_of(const Batch& batch, DenseShape shape) {
    shape.rows = static_cast<std::int64_t>(batch.examples);
    return shape;
  }

  void bind(Convolution& convolution, std::uint32_t weight, at::IntArrayRef shape) {
    convolution.weight = view(variables_[weight], shape);
    convolution.bias = view(variables_[weight + 1], {shape[0]});
    convolution.weight_gradient = view(gradients_[weight], shape);
    convolution.bias_gradient = view(gradients_[weight + 1], {shape[0]});
  }

  // Dropout is off without a seed.
  void forward(const Batch& batch, const StepSeed* seed) {
    const DenseShape dense0 = rows_of(batch, kDense0);
    const DenseShape dense1 = rows_of(batch, kDense1);
    const at::Tensor images = view(batch.inputs.data(), {dense0.rows, 1, kSide, kSide});
    features_ = convolutions_[1].forward(convolutions_[0].forward(images)).contiguous();
    before_.resize(batch.examples * static_cast<std::uint64_t>(kDense0.outputs));
    dense_forward(dense0, features_.const_data_ptr<float>(), nullptr, variables_[kDense0Weight],
                  variables_[kDense0Weight + 1], before_.data());
    after_.resize(before_.size());
    activate(activation_, before_, after_);
    hidden_ = after_;
    if (seed != nullptr) {
      mask_.resize(hidden_.size());
      dropout_mask(*seed, dropout_, mask_);
      for (std::size_t i = 0; i < hidden_.size(); ++i) hidden_[i] *= mask_[i];
    }
    outputs_.resize(batch.examples * static_cast<std::uint64_t>(kDense1.outputs));
    dense_forward(dense1, hidden_.data(), nullptr, variables_[kDense1Weight], variables_[kDense1Weight + 1],
                  outputs_.data());
  }

  void backward(const Batch& batch) {
    const DenseShape dense0 = rows_of(batch, kDense0);
    dense_backward(rows_of(batch, kDense1), kDense1Weight, hidden_.data(), d_outputs_);
    d_hidden_.resize(hidden_.size());
    dense_input_gradient(rows_of(batch, kDense1), d_outputs_.data(), variables_[kDense1Weight], d_hidden_.data());
    for (std::size_t i = 0; i < d_hidden_.size(); ++i) d_hidden_[i] *= mask_[i];
    activation_gradient(activation_, keeps_input(activation_) ? before_ : after_, d_hidden_);
    dense_backward(dense0, kDense0Weight, features_.const_data_ptr<float>(), d_hidden_);
    d_features_.resize(batch.examples * static_cast<std::uint64_t>(kDense0.inputs));
    dense_input_gradient(dense0, d_hidden_.data(), variables_[kDense0Weight], d_features_.data());
    const at::Tensor middle = convolutions_[1].backward(view(d_features_.data(), convolutions_[1].after.sizes()), true);
    front_.final_whole(kConv1 + 1);
    front_.final_whole(kConv1);
    convolutions_[0].backward(middle, false);
    front_.final_whole(kConv0 + 1);
    front_.final_whole(kConv0);
  }

  void dense_backward(const DenseShape& shape, std::uint32_t weight, const float* inputs,
                      std::span<const float> gradient) {
    dense_bias_gradient(shape, gradient.data(), gradients_[weight + 1]);
    front_.final_whole(weight + 1);
    dense_weight_gradient(shape, inputs, nullptr, gradient.data(), gradients_[weight],
                          [this, weight](std::uint64_t elements) { front_.final_until(weight, elements); });
  }

  const ModelSpec spec_;
  const Activation activation_;
  const Loss loss_;
  const double dropout_;
  std::array<const float*, 8> variables_ = {};
  std::array<float*, 8> gradients_ = {};
  std::array<Convolution, 2> convolutions_;
  at::Tensor features_;        // examples x 1024
  std::vector<float> before_;  // examples x 512: before the activation,
  std::vector<float> after_;   // after it,
  std::vector<float> mask_;
  std::vector<float> hidden_;     // after dropout
  std::vector<float> outputs_;    // examples x 10
  std::vector<float> d_outputs_;  // gradients of the loss with respect to these
  std::vector<float> d_hidden_;
  std::vector<float> d_features_;
  ReadyFront front_;
};

}  // namespace

std::unique_ptr<Engine> make_cnn(const ModelSection& model, const ModelSpec& spec) {
  return std::make_unique<Cnn>(model, spec);
}

}  // namespace disttrain::workerd
