// Computes the gradient of an mlp (sigmoid, softmax cross-entropy) with libtorch's autograd, as PyTorch does, to
// compare with the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace disttrain::bench {

// `layers`: widths from input to output. `parameters`: weight, bias, weight, bias, ... without gaps; they must outlive
// the result. The result takes a batch, row by row, computes its gradients and returns its loss.
std::function<float(std::span<const float> inputs, std::span<const std::int64_t> labels)> autograd_twin(
    const std::vector<std::uint32_t>& layers, std::span<float> parameters);

}  // namespace disttrain::bench
