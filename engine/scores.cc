#include "engine/scores.h"

#include <algorithm>
#include <cmath>

namespace disttrain::workerd {
namespace {

// One example: its row of outputs, and the label or the row of targets.
class Example {
 public:
  Example(const Scored& scored, std::size_t index, std::size_t width)
      : loss_(scored.loss),
        outputs_(scored.outputs.subspan(index * width, width)),
        label_(scored.labels.empty() ? -1 : scored.labels[index]),
        targets_(scored.labels.empty() ? scored.targets.subspan(index * width, width) : std::span<const float>()) {}

  std::size_t width() const { return outputs_.size(); }

  std::size_t label() const { return label_ >= 0 ? static_cast<std::size_t>(label_) : largest(targets_); }

  // The number of outputs that are larger than the label's, and of equal ones before it: 0 if it is the largest. The
  // loop has no branches to mispredict, because each step of training asks for each record.
  std::size_t place_of_label() const {
    const auto wanted = static_cast<std::uint32_t>(label());
    const float output = outputs_[wanted];
    std::uint32_t place = 0;
    for (std::uint32_t o = 0; o < width(); ++o) {
      const bool is_larger = outputs_[o] > output;
      const bool is_equal_before = (outputs_[o] == output) & (o < wanted);
      place += static_cast<std::uint32_t>(is_larger | is_equal_before);
    }
    return place;
  }

  bool is_correct() const {
    if (width() == 1) return (probability(0) >= 0.5) == is_positive(0);
    return place_of_label() == 0;
  }

  double log_probability_of_label() const { return static_cast<double>(outputs_[label()]) - log_sum(); }

  double probability(std::size_t o) const {
    const auto z = static_cast<double>(outputs_[o]);
    switch (loss_) {
      case Loss::kSoftmaxCrossEntropy:
        return std::exp(z - log_sum());
      case Loss::kSigmoidCrossEntropy:
        return 1.0 / (1.0 + std::exp(-z));
      case Loss::kMse:
        break;
    }
    return z;
  }

  double target(std::size_t o) const {
    if (label_ >= 0) return static_cast<std::size_t>(label_) == o ? 1.0 : 0.0;
    return static_cast<double>(targets_[o]);
  }

  bool is_positive(std::size_t o) const { return target(o) >= 0.5; }

  // The outputs that a metric of positives and negatives looks at: of two classes the second one, otherwise each.
  std::size_t first_binary() const { return loss_ == Loss::kSoftmaxCrossEntropy && width() == 2 ? 1 : 0; }

 private:
  static std::size_t largest(std::span<const float> row) {
    return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
  }

  double log_sum() const {
    const auto top = static_cast<double>(outputs_[largest(outputs_)]);
    double sum = 0.0;
    for (const float z : outputs_) sum += std::exp(static_cast<double>(z) - top);
    return top + std::log(sum);
  }

  const Loss loss_;
  const std::span<const float> outputs_;
  const std::int64_t label_;
  const std::span<const float> targets_;
};

// Adds to a {sum, weight} accumulator.
void add(double value, double weight, std::span<double> accumulator) {
  accumulator[0] += value;
  accumulator[1] += weight;
}

void add(const MetricSpec& metric, const Example& example, std::span<double> accumulator) {
  switch (metric.kind) {
    case MetricKind::kMean:
      return;
    case MetricKind::kAccuracy:
      return add(example.is_correct() ? 1.0 : 0.0, 1.0, accumulator);
    case MetricKind::kTopK:
      return add(example.place_of_label() < metric.k ? 1.0 : 0.0, 1.0, accumulator);
    case MetricKind::kPerplexity:
      return add(-example.log_probability_of_label(), 1.0, accumulator);
    case MetricKind::kAuc:
    case MetricKind::kPrecision:
    case MetricKind::kRecall:
    case MetricKind::kMse:
    case MetricKind::kMae:
      break;
  }
  for (std::size_t o = example.first_binary(); o < example.width(); ++o) {
    const double probability = example.probability(o);
    const double error = probability - example.target(o);
    const bool is_hit = probability >= 0.5 && example.is_positive(o);
    if (metric.kind == MetricKind::kAuc) add_to_auc(probability, example.is_positive(o), accumulator);
    if (metric.kind == MetricKind::kPrecision) add(is_hit ? 1.0 : 0.0, probability >= 0.5 ? 1.0 : 0.0, accumulator);
    if (metric.kind == MetricKind::kRecall) add(is_hit ? 1.0 : 0.0, example.is_positive(o) ? 1.0 : 0.0, accumulator);
    if (metric.kind == MetricKind::kMse) add(error * error, 1.0, accumulator);
    if (metric.kind == MetricKind::kMae) add(std::fabs(error), 1.0, accumulator);
  }
}

}  // namespace

void add_scores(const std::vector<MetricSpec>& metrics, const Scored& scored, std::span<double> accumulators) {
  if (scored.examples == 0) return;
  const std::size_t width = scored.outputs.size() / scored.examples;
  std::size_t begin = 0;
  for (const MetricSpec& metric : metrics) {
    const std::size_t size = accumulator_size(metric);
    for (std::size_t i = 0; i < scored.examples; ++i)
      add(metric, Example(scored, i, width), accumulators.subspan(begin, size));
    begin += size;
  }
}

}  // namespace disttrain::workerd
