#include "tools/bench/autograd_twin.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace disttrain::bench {

std::function<float(std::span<const float>, std::span<const std::int64_t>)> autograd_twin(
    const std::vector<std::uint32_t>& layers, std::span<float> parameters) {
  std::vector<at::Tensor> leaves;
  float* next = parameters.data();
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) {
    leaves.push_back(at::from_blob(next, {layers[l], layers[l + 1]}).requires_grad_());
    next += std::size_t{layers[l]} * layers[l + 1];
    leaves.push_back(at::from_blob(next, {layers[l + 1]}).requires_grad_());
    next += layers[l + 1];
  }
  return [leaves](std::span<const float> inputs, std::span<const std::int64_t> labels) mutable {
    const auto rows = static_cast<std::int64_t>(labels.size());
    at::Tensor values =
        at::from_blob(const_cast<float*>(inputs.data()), {rows, static_cast<std::int64_t>(inputs.size()) / rows});
    for (std::size_t l = 0; l < leaves.size(); l += 2) {
      values = at::addmm(leaves[l + 1], values, leaves[l]);
      if (l + 2 < leaves.size()) values = at::sigmoid(values);
    }
    const at::Tensor wanted = at::from_blob(const_cast<std::int64_t*>(labels.data()), {rows}, at::kLong);
    const at::Tensor loss = at::cross_entropy_loss(values, wanted);
    for (at::Tensor& leaf : leaves) leaf.mutable_grad().reset();
    torch::autograd::backward({loss}, {});
    return loss.item<float>();
  };
}

}  // namespace disttrain::bench
