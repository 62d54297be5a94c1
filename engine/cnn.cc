#include "engine/cnn.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "engine/activation.h"
#include "engine/dense.h"
#include "engine/dropout.h"
#include "engine/loss.h"
#include "engine/pooling.h"
#include "engine/ready_front.h"
#include "engine/scores.h"

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

// A convolution, then the maximum of each 2 x 2 block, then the activation. The activation comes last because it then
// has only a quarter of the values to compute. The buffers are kept from step to step, except those that libtorch
// allocates in a convolution.
struct Convolution {
  Activation activation = Activation::kRelu;
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor weight_gradient;
  at::Tensor bias_gradient;
  at::Tensor input;
  std::vector<float> before;        // the activation's input
  std::vector<float> after;         // the activation's output
  std::vector<std::uint8_t> which;  // the position, 0 to 3, of the largest value in each 2 x 2 block
  std::vector<float> d_convolved;
  std::array<std::int64_t, 4> convolved_shape = {};

  at::Tensor forward(const at::Tensor& from) {
    input = from;
    const at::Tensor convolved =
        at::convolution(input, weight, bias, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1).contiguous();
    std::copy_n(convolved.sizes().begin(), 4, convolved_shape.begin());
    const auto pooled = static_cast<std::size_t>(convolved.numel() / 4);
    before.resize(pooled);
    after.resize(pooled);
    which.resize(pooled);
    max_pool(values_of(convolved), convolved.size(3), before, which);
    activate(activation, before, after);
    return view(after.data(), {convolved.size(0), convolved.size(1), convolved.size(2) / 2, convolved.size(3) / 2});
  }

  // `gradient` is the gradient of the output; it is overwritten. Returns the gradient of the input if `wants_input`,
  // otherwise an undefined tensor.
  at::Tensor backward(std::span<float> gradient, bool wants_input) {
    activation_gradient(activation, keeps_input(activation) ? before : after, gradient);
    d_convolved.resize(gradient.size() * 4);
    max_pool_gradient(gradient, which, convolved_shape[3], d_convolved);
    auto [d_input, d_weight, d_bias] =
        at::convolution_backward(view(d_convolved.data(), convolved_shape), input, weight, bias.sizes(), {1, 1}, {0, 0},
                                 {1, 1}, false, {0, 0}, 1, {wants_input, true, true});
    weight_gradient.copy_(d_weight);
    bias_gradient.copy_(d_bias);
    return d_input;
  }
};

class Cnn final : public Computation {
 public:
  Cnn(const ModelSection& model, const ModelSpec& spec)
      : spec_(spec),
        activation_(model.activation),
        loss_(model.loss),
        dropout_(model.dropout),
        scores_(accumulator_size(spec.metrics)) {
    for (Convolution& convolution : convolutions_) convolution.activation = activation_;
  }

  const ModelSpec& describe() const override { return spec_; }
  Status takes(Program, std::uint64_t) const override { return {}; }

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

  Result<std::vector<float>> initial_values() override { return std::vector<float>(); }

  Result<EngineOutput> step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override {
    const Records records = records_of(batch, spec_);
    if (Status status = check(records); !status) return tl::unexpected(status.error());
    forward(records, &seed);
    d_outputs_.resize(outputs_.size());
    const double loss_sum = loss_of(loss_, records, outputs_, d_outputs_);
    score(records, outputs_);
    front_.begin(ready);
    front_.note_loss(loss_sum / static_cast<double>(records.examples));
    backward(records);
    return EngineOutput{.loss_sum = loss_sum, .examples = records.examples, .metrics = scores_};
  }

  Result<EngineOutput> evaluate(const Batch& batch) override {
    const Records records = records_of(batch, spec_);
    if (Status status = check(records); !status) return tl::unexpected(status.error());
    forward(records, nullptr);
    score(records, outputs_);
    return EngineOutput{
        .loss_sum = loss_of(loss_, records, outputs_, {}), .examples = records.examples, .metrics = scores_};
  }

  Result<EngineOutput> predict(const Batch& batch) override {
    const Records records = records_of(batch, spec_);
    forward(records, nullptr);
    return EngineOutput{.examples = records.examples, .outputs = outputs_};
  }

 private:
  void score(const Records& records, std::span<const float> outputs) {
    std::fill(scores_.begin(), scores_.end(), 0.0);
    add_scores(spec_.metrics, {loss_, records.examples, outputs, records.labels, records.targets}, scores_);
  }

  Status check(const Records& records) const {
    return check_records(loss_, records, kSide * kSide, static_cast<std::uint64_t>(kDense1.outputs));
  }

  static DenseShape rows_of(const Records& records, DenseShape shape) {
    shape.rows = static_cast<std::int64_t>(records.examples);
    return shape;
  }

  void bind(Convolution& convolution, std::uint32_t weight, at::IntArrayRef shape) {
    convolution.weight = view(variables_[weight], shape);
    convolution.bias = view(variables_[weight + 1], {shape[0]});
    convolution.weight_gradient = view(gradients_[weight], shape);
    convolution.bias_gradient = view(gradients_[weight + 1], {shape[0]});
  }

  // Dropout is off without a seed.
  void forward(const Records& records, const StepSeed* seed) {
    const DenseShape dense0 = rows_of(records, kDense0);
    const DenseShape dense1 = rows_of(records, kDense1);
    const at::Tensor images = view(records.inputs.data(), {dense0.rows, 1, kSide, kSide});
    convolutions_[1].forward(convolutions_[0].forward(images));
    before_.resize(records.examples * static_cast<std::uint64_t>(kDense0.outputs));
    dense_forward(dense0, convolutions_[1].after.data(), nullptr, variables_[kDense0Weight],
                  variables_[kDense0Weight + 1], before_.data());
    after_.resize(before_.size());
    activate(activation_, before_, after_);
    hidden_ = after_;
    if (seed != nullptr) {
      mask_.resize(hidden_.size());
      dropout_mask(*seed, dropout_, mask_);
      for (std::size_t i = 0; i < hidden_.size(); ++i) hidden_[i] *= mask_[i];
    }
    outputs_.resize(records.examples * static_cast<std::uint64_t>(kDense1.outputs));
    dense_forward(dense1, hidden_.data(), nullptr, variables_[kDense1Weight], variables_[kDense1Weight + 1],
                  outputs_.data());
  }

  void backward(const Records& records) {
    const DenseShape dense0 = rows_of(records, kDense0);
    // Each layer's input gradient comes first: a weight may be overwritten as soon as its gradient is announced.
    d_hidden_.resize(hidden_.size());
    dense_input_gradient(rows_of(records, kDense1), d_outputs_.data(), variables_[kDense1Weight], d_hidden_.data());
    dense_backward(rows_of(records, kDense1), kDense1Weight, hidden_.data(), d_outputs_);
    for (std::size_t i = 0; i < d_hidden_.size(); ++i) d_hidden_[i] *= mask_[i];
    activation_gradient(activation_, keeps_input(activation_) ? before_ : after_, d_hidden_);
    d_features_.resize(records.examples * static_cast<std::uint64_t>(kDense0.inputs));
    dense_input_gradient(dense0, d_hidden_.data(), variables_[kDense0Weight], d_features_.data());
    dense_backward(dense0, kDense0Weight, convolutions_[1].after.data(), d_hidden_);
    const at::Tensor middle = convolutions_[1].backward(d_features_, true).contiguous();
    front_.final_whole(kConv1 + 1);
    front_.final_whole(kConv1);
    convolutions_[0].backward(values_of(middle), false);
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
  std::vector<float> before_;  // examples x 512, before the activation
  std::vector<float> after_;   // after the activation
  std::vector<float> mask_;
  std::vector<float> hidden_;     // after dropout
  std::vector<float> outputs_;    // examples x 10
  std::vector<float> d_outputs_;  // the loss's gradients with respect to outputs_
  std::vector<float> d_hidden_;
  std::vector<float> d_features_;
  std::vector<double> scores_;  // the accumulators of spec_.metrics
  ReadyFront front_;
};

}  // namespace

std::unique_ptr<Computation> make_cnn(const ModelSection& model, const ModelSpec& spec) {
  return std::make_unique<Cnn>(model, spec);
}

}  // namespace disttrain::workerd
