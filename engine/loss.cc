// With model.class_weights, the sum of the weighted losses is divided by the number of records. PyTorch's
// CrossEntropyLoss divides by the sum of the records' weights. Then a batch with rare classes would count as much as
// one with frequent classes, and the mean over parts, workers and batches would depend on how the records are
// distributed over them. Programs and trainers compute what their PyTorch loss says.
#include "engine/loss.h"

#include <algorithm>
#include <cmath>

namespace disttrain::workerd {
namespace {

double softmax_cross_entropy(std::size_t label, std::span<const float> row, float scale, std::span<float> gradient) {
  const float largest = *std::max_element(row.begin(), row.end());
  float sum = 0.0F;
  for (std::size_t o = 0; o < row.size(); ++o) {
    const float share = std::exp(row[o] - largest);
    sum += share;
    if (!gradient.empty()) gradient[o] = share;
  }
  if (!gradient.empty()) {
    for (float& value : gradient) value *= scale / sum;
    gradient[label] -= scale;
  }
  return static_cast<double>(largest + std::log(sum) - row[label]);
}

double sigmoid_cross_entropy(std::span<const float> targets, std::span<const float> row, float scale,
                             std::span<float> gradient) {
  double sum = 0.0;
  for (std::size_t o = 0; o < row.size(); ++o) {
    const float z = row[o];
    const float target = targets[o];
    const float decay = std::exp(-std::fabs(z));
    sum += static_cast<double>(std::max(z, 0.0F) - z * target + std::log1p(decay));
    const float sigmoid = z >= 0.0F ? 1.0F / (1.0F + decay) : decay / (1.0F + decay);
    if (!gradient.empty()) gradient[o] = scale * (sigmoid - target);
  }
  return sum;
}

double mean_squared_error(std::span<const float> targets, std::span<const float> row, float scale,
                          std::span<float> gradient) {
  const float outputs = static_cast<float>(row.size());
  double sum = 0.0;
  for (std::size_t o = 0; o < row.size(); ++o) {
    const float difference = row[o] - targets[o];
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

Status check_records(Loss loss, const Records& records, std::uint64_t input_elements, std::uint64_t outputs) {
  if (records.inputs.size() != records.examples * input_elements)
    return misfit("input values", records.inputs.size(), records.examples * input_elements);
  if (!records.weights.empty() && records.weights.size() != records.examples)
    return misfit("weights", records.weights.size(), records.examples);
  if (loss != Loss::kSoftmaxCrossEntropy) {
    if (records.targets.size() != records.examples * outputs)
      return misfit("target values", records.targets.size(), records.examples * outputs);
    return {};
  }
  if (records.labels.size() != records.examples) return misfit("labels", records.labels.size(), records.examples);
  for (std::int64_t label : records.labels)
    if (label < 0 || static_cast<std::uint64_t>(label) >= outputs)
      return fail(ErrorCode::kData, "a record has label " + std::to_string(label) + "; the model has classes 0 to " +
                                        std::to_string(outputs - 1));
  return {};
}

double loss_of(Loss loss, const Records& records, std::span<const float> outputs, std::span<float> gradient) {
  if (records.examples == 0) return 0.0;
  const std::size_t width = outputs.size() / records.examples;
  const float mean = 1.0F / static_cast<float>(records.examples);
  double sum = 0.0;
  for (std::size_t r = 0; r < records.examples; ++r) {
    const float weight = records.weights.empty() ? 1.0F : records.weights[r];
    const float scale = weight * mean;
    double of_record = 0.0;
    const std::span<const float> row = outputs.subspan(r * width, width);
    const std::span<float> out = gradient.empty() ? gradient : gradient.subspan(r * width, width);
    switch (loss) {
      case Loss::kSoftmaxCrossEntropy:
        of_record = softmax_cross_entropy(static_cast<std::size_t>(records.labels[r]), row, scale, out);
        break;
      case Loss::kSigmoidCrossEntropy:
        of_record = sigmoid_cross_entropy(records.targets.subspan(r * width, width), row, scale, out);
        break;
      case Loss::kMse:
        of_record = mean_squared_error(records.targets.subspan(r * width, width), row, scale, out);
        break;
    }
    sum += static_cast<double>(weight) * of_record;
  }
  return sum;
}

}  // namespace disttrain::workerd
