// Loss functions and their gradients. They are plain loops, because computing a loss takes little time compared with a
// layer of the network. The loss of a batch is the mean over its examples of weight times loss, so gradients contain
// the factor weight / examples.
//
// For one example, with outputs z and targets t, the losses are:
// - softmax_cross_entropy: -log(softmax(z)[label]), computed by log-sum-exp.
// - sigmoid_cross_entropy: the sum over the outputs of max(z, 0) - z t + log(1 + exp(-|z|)).
// - mse: the mean over the outputs of (z - t)^2.
#pragma once

#include <cstdint>
#include <span>

#include "common/config/job_config.h"
#include "common/result.h"
#include "engine/records.h"

namespace disttrain::workerd {

// Checks that the records fit the loss: their spans have the right sizes, they have the labels or targets that the loss
// needs (common/builtin/builtin.h), there are weights for all or none, and each label is at least 0 and less than
// `outputs`. Errors: kData.
Status check_records(Loss loss, const Records& records, std::uint64_t input_elements, std::uint64_t outputs);

// Returns the sum of the examples' losses, each times its weight. The records must have passed check_records(). If
// `gradient` isn't empty, also writes to it the gradient of the mean loss with respect to the outputs. `outputs` and
// `gradient` have one row per example.
double loss_of(Loss loss, const Records& records, std::span<const float> outputs, std::span<float> gradient);

}  // namespace disttrain::workerd
