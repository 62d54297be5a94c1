// Computes the gradient of an mlp (sigmoid, softmax cross-entropy) with libtorch's autograd, as PyTorch does. The
// benchmark compares its speed with that of the worker's engine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace disttrain::bench {

// Returns a function that computes the gradients and returns the loss of a batch. `inputs` has the batch's rows, one
// after the other. `layers` has the widths of the layers, from input to output. `parameters` has the weights and biases
// of the first layer, then those of the second, and so on, without gaps. The returned function reads the parameters, so
// they must outlive it.
std::function<float(std::span<const float> inputs, std::span<const std::int64_t> labels)> autograd_twin(
    const std::vector<std::uint32_t>& layers, std::span<float> parameters);

}  // namespace disttrain::bench
