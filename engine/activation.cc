// Calls ATen's vectorised functions, in the forms that write into a given tensor.
#include "engine/activation.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/threshold_backward.h>

namespace disttrain::workerd {
namespace {

at::Tensor view(std::span<float> values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat);
}

// from_blob needs a mutable pointer; the cast is safe because nothing writes to inputs.
at::Tensor view(std::span<const float> values) {
  return view(std::span<float>(const_cast<float*>(values.data()), values.size()));
}

}  // namespace

bool keeps_input(Activation activation) {
  return activation == Activation::kGelu;
}

void activate(Activation activation, std::span<const float> in, std::span<float> out) {
  at::Tensor result = view(out);
  switch (activation) {
    case Activation::kSigmoid:
      at::sigmoid_out(result, view(in));
      return;
    case Activation::kRelu:
      at::clamp_min_out(result, view(in), 0.0);
      return;
    case Activation::kTanh:
      at::tanh_out(result, view(in));
      return;
    case Activation::kGelu:
      at::gelu_out(result, view(in));
      return;
  }
}

void activation_gradient(Activation activation, std::span<const float> kept, std::span<float> gradient) {
  at::Tensor result = view(gradient);
  switch (activation) {
    case Activation::kSigmoid:
      at::sigmoid_backward_out(result, result, view(kept));
      return;
    case Activation::kRelu:
      at::threshold_backward_out(result, result, view(kept), 0.0);
      return;
    case Activation::kTanh:
      at::tanh_backward_out(result, result, view(kept));
      return;
    case Activation::kGelu:
      at::gelu_backward_out(result, result, view(kept));
      return;
  }
}

}  // namespace disttrain::workerd
