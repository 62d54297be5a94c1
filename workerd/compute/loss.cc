#include "workerd/compute/loss.h"

#include <algorithm>
#include <cmath>

namespace disttrain::workerd {
namespace {

// The target of each output. If the batch has labels instead of targets, the output at the label's index has the target
// 1, and the other outputs have the target 0.
class Targets {
 public:
  Targets(const Batch& batch, std::size_t outputs) : batch_(batch), outputs_(outputs) {}
  float at(std::size_t row, std::size_t output) const {
    if (!batch_.targets.empty()) return batch_.targets[row * outputs_ + output];
    return static_cast<std::size_t>(batch_.labels[row]) == output ? 1.0F : 0.0F;
  }

 private:
  const Batch& batch_;
  std::size_t outputs_;
};

double softmax_cross_entropy(std::size_t label, std::span<const float> row, float scale, std::span<float> gradient) {
  const float largest = *std::max_element(row.begin(), row.end());
  float sum = 0.0F;
  for (float value : row) sum += std::exp(value - largest);
  const float log_sum = largest + std::log(sum);
  if (!gradient.empty()) {
    for (std::size_t o = 0; o < row.size(); ++o) gradient[o] = scale * std::exp(row[o] - log_sum);
    gradient[label] -= scale;
  }
  return static_cast<double>(log_sum - row[label]);
}

double sigmoid_cross_entropy(const Targets& targets, std::size_t r, std::span<const float> row, float scale,
                             std::span<float> gradient) {
  double sum = 0.0;
  for (std::size_t o = 0; o < row.size(); ++o) {
    const float z = row[o];
    const float target = targets.at(r, o);
    const float decay = std::exp(-std::fabs(z));
    sum += static_cast<double>(std::max(z, 0.0F) - z * target + std::log1p(decay));
    const float sigmoid = z >= 0.0F ? 1.0F / (1.0F + decay) : decay / (1.0F + decay);
    if (!gradient.empty()) gradient[o] = scale * (sigmoid - target);
  }
  return sum;
}

double mean_squared_error(const Targets& targets, std::size_t r, std::span<const float> row, float scale,
                          std::span<float> gradient) {
  const float outputs = static_cast<float>(row.size());
  double sum = 0.0;
  for (std::size_t o = 0; o < row.size(); ++o) {
    const float difference = row[o] - targets.at(r, o);
    sum += static_cast<double>(difference) * static_cast<double>(difference);
    if (!gradient.empty()) gradient[o] = scale * 2.0F * difference / outputs;
  }
  return sum / static_cast<double>(row.size());
}

Status misfit(const std::string& what, std::uint64_t found, std::uint64_t expected) {
  return fail(ErrorCode::kData,
              "a batch has " + std::to_string(found) + " " + what + "; the model expects " + std::to_string(expected));
}

}  // namespace

Status check_batch(Loss loss, const Batch& batch, std::uint64_t input_elements, std::uint64_t outputs) {
  if (batch.inputs.size() != batch.examples * input_elements)
    return misfit("input values", batch.inputs.size(), batch.examples * input_elements);
  const bool wants_labels = loss == Loss::kSoftmaxCrossEntropy || (batch.targets.empty() && outputs > 1);
  if (!wants_labels) {
    if (batch.targets.size() != batch.examples * outputs)
      return misfit("target values", batch.targets.size(), batch.examples * outputs);
    return {};
  }
  if (!batch.targets.empty()) return misfit("target values besides labels", batch.targets.size(), 0);
  if (batch.labels.size() != batch.examples) return misfit("labels", batch.labels.size(), batch.examples);
  for (std::int64_t label : batch.labels)
    if (label < 0 || static_cast<std::uint64_t>(label) >= outputs)
      return fail(ErrorCode::kData, "a record has label " + std::to_string(label) + "; the model has classes 0 to " +
                                        std::to_string(outputs - 1));
  return {};
}

double loss_of(Loss loss, const Batch& batch, std::span<const float> outputs, std::span<float> gradient) {
  if (batch.examples == 0) return 0.0;
  const std::size_t width = outputs.size() / batch.examples;
  const float scale = 1.0F / static_cast<float>(batch.examples);
  const Targets targets(batch, width);
  double sum = 0.0;
  for (std::size_t r = 0; r < batch.examples; ++r) {
    const std::span<const float> row = outputs.subspan(r * width, width);
    const std::span<float> out = gradient.empty() ? gradient : gradient.subspan(r * width, width);
    switch (loss) {
      case Loss::kSoftmaxCrossEntropy:
        sum += softmax_cross_entropy(static_cast<std::size_t>(batch.labels[r]), row, scale, out);
        break;
      case Loss::kSigmoidCrossEntropy:
        sum += sigmoid_cross_entropy(targets, r, row, scale, out);
        break;
      case Loss::kMse:
        sum += mean_squared_error(targets, r, row, scale, out);
        break;
    }
  }
  return sum;
}

std::uint64_t count_correct(const Batch& batch, std::span<const float> outputs) {
  if (batch.labels.empty()) return 0;
  const std::size_t width = outputs.size() / batch.examples;
  std::uint64_t correct = 0;
  for (std::size_t r = 0; r < batch.examples; ++r) {
    const auto row = outputs.subspan(r * width, width);
    const auto predicted = std::max_element(row.begin(), row.end()) - row.begin();
    correct += predicted == batch.labels[r] ? 1U : 0U;
  }
  return correct;
}

}  // namespace disttrain::workerd
