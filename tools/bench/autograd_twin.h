// The same gradient of an mlp (sigmoid, softmax cross-entropy) by libtorch's autograd, as PyTorch would do it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace disttrain::bench {

// `parameters` are weight, bias, weight, bias, ... one after the other and outlive the result, which returns the loss.
std::function<float(std::span<const float> inputs, std::span<const std::int64_t> labels)> autograd_twin(
    const std::vector<std::uint32_t>& layers, std::span<float> parameters);

}  // namespace disttrain::bench
