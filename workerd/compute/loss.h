// Loss functions over rows of outputs, with their gradients, in plain loops: outputs cost little beside a layer. All
// are means over the examples, so gradients carry the factor 1 / examples.
//
// softmax_cross_entropy: -log softmax(output)[label], by log-sum-exp.
// sigmoid_cross_entropy: sum over outputs of max(z, 0) - z t + log(1 + exp(-|z|)).
// mse: mean over outputs of (z - t)^2.
#pragma once

#include <cstdint>
#include <span>

#include "common/config/job_config.h"
#include "common/result.h"
#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// Whether the batch fits the loss: sizes of its spans, labels within 0 .. outputs - 1, labels or targets as the loss
// needs (common/builtin.h). Errors: kData.
Status check_batch(Loss loss, const Batch& batch, std::uint64_t input_elements, std::uint64_t outputs);

// Returns the loss summed over the examples of a batch that passed check_batch. Writes its gradient with respect to the
// outputs, divided by the number of examples, to `gradient` unless that is empty. Both arrays are examples * outputs.
double loss_of(Loss loss, const Batch& batch, std::span<const float> outputs, std::span<float> gradient);

// The number of rows whose largest output (the first, if several are equal) is the label's.
std::uint64_t count_correct(const Batch& batch, std::span<const float> outputs);

}  // namespace disttrain::workerd
