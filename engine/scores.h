// Adds the outputs of a model for a batch to the accumulators of its metrics (common/model_metric.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "common/model_metric.h"

namespace disttrain::workerd {

// The outputs of a model, and what they should have been. An output is the argument of the loss: before a softmax or a
// sigmoid.
struct Scored {
  Loss loss = Loss::kSoftmaxCrossEntropy;
  std::uint64_t examples = 0;
  std::span<const float> outputs;        // examples rows of the same width, at least 1
  std::span<const std::int64_t> labels;  // with softmax_cross_entropy: one per example, below the width
  std::span<const float> targets;        // otherwise: one per output
};

// `accumulators` has accumulator_size(metrics) numbers; the examples are added to them.
// - The probability of an output is its softmax (the probability of class 1, for two classes) or its sigmoid; with mse
//   it is the output itself. It counts as positive if it is at least one half.
// - Accuracy with targets: each example counts as correct if its only output is positive exactly if the target is. With
//   several outputs, the largest output must be at the index of the largest target.
// - kMse and kMae compare probabilities with targets; with mse, outputs with targets.
// - Metrics of kind kMean are the engine's own, and get nothing here.
void add_scores(const std::vector<MetricSpec>& metrics, const Scored& scored, std::span<double> accumulators);

}  // namespace disttrain::workerd
